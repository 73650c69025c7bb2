/* colours.h - the colours and the type of the pictures. They are those of the page of build/explain
 * (examples/explain/page/base.css; test_attention_map compares them), for light and for dark
 * screens.
 *
 * In the page blue is positive and vermillion negative. No number of these pictures is negative, so
 * they are blue and otherwise neutral.
 */
#ifndef TAPEHEAD_EXAMPLES_COLOURS_H
#define TAPEHEAD_EXAMPLES_COLOURS_H

#define PAPER      "#fdfdfc"
#define PAPER_DARK "#15181b"
#define INK        "#1c1e21"
#define INK_DARK   "#e9eaeb"
#define SOFT       "#555c63" /* words beside the picture, numbers of axes */
#define SOFT_DARK  "#a8afb6"
#define FAINT      "#6a7178"
#define FAINT_DARK "#8d959d"
#define LINE       "#d8dbde" /* thin lines */
#define LINE_DARK  "#3b4147"
#define CELL       "#f1f2f2" /* a number of 0 */
#define CELL_DARK  "#23282d"
#define POS        "#0072b2"
#define POS_DARK   "#2880c4"

/* The hatch over a masked number: black or white, and its opacity. */
#define HATCH              "#000000"
#define HATCH_OPACITY      "0.17"
#define HATCH_DARK         "#ffffff"
#define HATCH_OPACITY_DARK "0.22"
enum { HATCH_WIDTH = 2, HATCH_PERIOD = 7 }; /* of its lines */

#define SERIF                                                                                      \
    "'Iowan Old Style','Palatino Linotype',Palatino,'Book Antiqua',P052,'URW Palladio L',"         \
    "Georgia,serif"
#define SANS "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
#define MONO "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"

#endif
