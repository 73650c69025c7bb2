/* save.js - the step as a picture that a reader saves: an SVG file of the tape, the rule, its tables, the line of terms and
 * the words. It has what the page shows: cells, lines and text are measured in the page. It has the colours of this window;
 * where a viewer prefers the other ones, dark or light, a style sheet in the file gives them. */
"use strict";

const SAVED = ".heads:not(.looks) [aria-pressed=true], .items, .terms, #words > .text", CARD = ".keep", ROW = "#rule-title, #verdict .tick";
const APART = 28; /* pixels between the tape and the step */

function saveStep() {
    const { activeElement } = document, panel = byId("panel"), { look } = state;
    panel.hidden = true; /* it takes room from the tape */
    state.look = Infinity; /* the rule */
    drawAgain();
    const text = new XMLSerializer().serializeToString(stepAsSvg()).replaceAll("><", ">\n<") + "\n",
        link = el("a", { download: `step-${state.lesson.name}-${stepNow().id}.svg`,
            href: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text) });
    link.click();
    panel.hidden = false;
    state.look = look;
    drawAgain();
    activeElement.focus();
}

function stepAsSvg() {
    const terms = byId("terms"); /* the card has none */
    if (terms) terms.style.position = "static"; /* on a phone the line of terms stands over the tables */
    drawCurves();
    byId("door").classList.add("saving"); /* the rule stands in the place of its box */
    const [now, other] = inBothColours(paintStep), twins = [...other.querySelectorAll("*")], classes = new Map();
    [...now.querySelectorAll("*")].forEach((shape, n) => {
        const differs = ["fill", "stroke", "opacity", "filter", "fill-opacity", "stroke-opacity"].filter(name =>
            shape.getAttribute(name) !== twins[n].getAttribute(name));
        const value = name => twins[n].getAttribute(name) ?? (name.endsWith("opacity") ? 1 : "none"),
            rule = differs.map(name => `${name}:${value(name)}`).join(";");
        if (!rule) return;
        if (!classes.has(rule)) classes.set(rule, `c${classes.size}`);
        shape.setAttribute("class", classes.get(rule));
    });
    const rules = [...classes].map(([rule, name]) => `.${name}{${rule}}`);
    if (terms) terms.style.position = "";
    byId("door").classList.remove("saving");
    drawCurves();
    now.firstChild.after(svg("style", {}, `@media(prefers-color-scheme:${isDark() ? "light" : "dark"}){${rules.join("")}}`));
    return now;
}

const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

/* What paint() returns in the colours of this window, and in the other ones. Nothing moves meanwhile, so that no colour is on
 * its way to another. */
function inBothColours(paint) {
    const media = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules]).map(rule => rule.media).filter(Boolean);
    const about = name => media.filter(each => each.mediaText.includes(name)).map(each => [each, each.mediaText]);
    const colours = about("prefers-color-scheme"), motion = about("prefers-reduced-motion");
    const set = (list, text) => list.forEach(([each, before]) => (each.mediaText = text ?? before));
    set(motion, "all");
    const now = paint();
    set(colours, isDark() ? "not all" : "all");
    const other = paint();
    set(colours);
    void getComputedStyle(byId("machine")).color; /* the colours are back before motion is */
    set(motion);
    return [now, other];
}

/* ---- the picture -------------------------------------------------------------------------------------------------- */

function paintStep() {
    const box = each => each.getBoundingClientRect(), below = byId("below"), tape = byId("picture"), { lesson } = state,
        isOfCard = isCard(stepNow()), parts = [...byId("door").querySelectorAll(isOfCard ? "none" : ROW), ...below.querySelectorAll(isOfCard ? CARD : SAVED)],
        frame = isOfCard ? { left: box(parts[0]).left - APART, width: box(parts[0]).width + 2 * APART } : box(below);
    const top = Math.min(...parts.map(each => box(each).top)), bottom = Math.max(...parts.map(each => box(each).bottom));
    const down = !isOfCard && tape.offsetHeight && tape.offsetHeight + APART; /* of the step; 0: the tape is hidden, or left out */
    const width = Math.ceil(Math.max(frame.width, isOfCard ? 0 : tape.scrollWidth)), height = Math.ceil(down + bottom - top + 2 * APART);
    const { backgroundColor, fontFamily } = getComputedStyle(document.body),
        { borderBottomColor } = getComputedStyle(byId("machine"));
    return svg("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height,
        "font-family": typeOf(fontFamily) },
        svg("title", {}, [lesson.title, phaseOf(lesson, state.step)].filter(Boolean).join(", ") + ": " +
            byId("rule-title").textContent), drawPatterns(),
        svg("rect", { width, height, ...paintOf("fill", backgroundColor) }),
        ...(down ? shapesIn(tape, { x: frame.left - tape.scrollLeft, y: box(tape).top - APART / 2 }) : []),
        ...(down ? [svg("path", { d: `M0 ${down}H${width}`, ...paintOf("stroke", borderBottomColor) })] : []),
        ...[byId("curves"), ...parts].filter(Boolean).flatMap(part => shapesIn(part, { x: frame.left, y: top - down - APART })));
}

const property = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* The hatch of what is masked, and the dots of what was dropped. */
function drawPatterns() {
    const pattern = (attributes, shape) =>
        svg("pattern", { width: 7, height: 7, patternUnits: "userSpaceOnUse", ...attributes }, shape);
    return svg("defs", {}, pattern({ id: "masked", patternTransform: "rotate(-45)" },
        svg("path", { d: "M1 0v7", "stroke-width": 2, ...paintOf("stroke", property("--hatch")) })),
    pattern({ id: "dropped" }, svg("circle", { cx: 3.5, cy: 3.5, r: 1.5, ...paintOf("fill", property("--hatch")) })));
}

/* An element and all in it as shapes, in the order in which the page has them; from: the corner of the picture. */
function shapesIn(box, from) {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT), list = [];
    for (let node = box; node; node = walker.nextNode()) {
        const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node, style = getComputedStyle(element);
        if (element.closest("details, form:not(#rule-form), [hidden]") || style.visibility === "hidden" || style.opacity === "0") continue;
        if (element !== node) list.push(...rowsOfText(node).map(line => drawText(line, style, from)));
        else if (node.localName === "svg") list.push(copyOf(node, from));
        else if (node.localName === "canvas") list.push(drawCells(node, style, from));
        else if (!node.closest("svg")) list.push(...drawGround(node, style, from));
    }
    return list;
}

const typeOf = family => family.replaceAll('"', "'");
const moved = (r, from, scale) => ({
    transform: `translate(${tenth(r.x - from.x)} ${tenth(r.y - from.y)}) scale(${tenth(1000 * scale) / 1000})` });
const tenth = x => Math.round(10 * x) / 10;
const isThrough = colour => colour === "transparent" || /^rgba\(.*, 0\)$/.test(colour);

/* "#f1f2f2", "rgb(241, 242, 242)" or "rgb(0 0 0 / .17)" as attributes: the colour, and how opaque it is. */
function paintOf(name, colour) {
    const [r, g, b, a = 1] = colour.startsWith("#") ? colour.slice(1).match(/../g).map(pair => parseInt(pair, 16))
        : (colour.match(/[\d.]+/g) || []).map(Number);
    if (r === undefined || a === 0) return { [name]: "none" };
    const hex = "#" + [r, g, b].map(x => Math.round(x).toString(16).padStart(2, "0")).join("");
    return { [name]: hex, ...(a < 1 && { [name + "-opacity"]: Number(a.toFixed(3)) }) };
}

/* ---- boxes -------------------------------------------------------------------------------------------------------- */

/* Is it in the part of a large table that is scrolled into view? */
function isInView(r, element) {
    const views = [element.closest(".panels"), element.closest(".grid")].filter(Boolean);
    return views.map(each => each.getBoundingClientRect()).every(v => r.left > v.left - 4 && r.right < v.right + 4 && r.top > v.top - 4 && r.bottom < v.bottom + 4);
}

/* What a box has of its own: a ground, a tint over it, a pattern, a line around it or under it. */
function drawGround(element, style, from) {
    const r = element.getBoundingClientRect(), radius = parseFloat(style.borderTopLeftRadius) || 0, list = [];
    if (!r.width || !isInView(r, element)) return [];
    const rect = (out, attributes) => list.push(svg("rect", { x: tenth(r.x - from.x - out), y: tenth(r.y - from.y - out),
        width: tenth(r.width + 2 * out), height: tenth(r.height + 2 * out), rx: Math.max(0, radius + out), ...attributes }));
    const line = (out, width, colour, dashes) => rect(out, { fill: "none", ...paintOf("stroke", colour), "stroke-width": width,
        ...(dashes && { "stroke-dasharray": "3 3" }) });
    if (!isThrough(style.backgroundColor)) rect(0, paintOf("fill", style.backgroundColor));
    const [, tint] = /^linear-gradient\((rgba?\([^)]*\))/.exec(style.backgroundImage) || [];
    if (tint && element.matches(".c")) rect(0, paintOf("fill", tint));
    for (const name of ["masked", "dropped"]) if (element.matches(`.c.${name}`)) rect(0, { fill: `url(#${name})` });
    const [, shadow, spread, inset] = /^(rgba?\([^)]*\)) 0px 0px 0px ([\d.]+)px( inset)?/.exec(style.boxShadow) || [];
    if (shadow) line((inset ? -1 : 1) * spread / 2, Number(spread), shadow);
    if (style.outlineStyle !== "none" && element.matches(".c, .map")) {
        const width = parseFloat(style.outlineWidth);
        line(parseFloat(style.outlineOffset) + width / 2, width, style.outlineColor, style.outlineStyle === "dashed");
    }
    const under = parseFloat(style.borderBottomWidth), colour = style.borderBottomColor;
    if (under && parseFloat(style.borderTopWidth)) line(-under / 2, under, colour);
    else if (under) list.push(svg("path", { d: `M${tenth(r.x - from.x)} ${tenth(r.bottom - from.y)}h${tenth(r.width)}`,
        ...paintOf("stroke", colour), "stroke-width": under }));
    return list;
}

/* The numbers of a small table of the tape. */
function drawCells(canvas, { opacity, filter }, from) {
    const r = canvas.getBoundingClientRect();
    return svg("g", { ...moved(r, from, r.width / canvas.offsetWidth), ...(opacity !== "1" && { opacity }),
        ...(filter !== "none" && { filter }) }, ...canvas.cells.flatMap(({ at, colour, strength }) => {
        const [x, y, width, height] = at.map(tenth);
        return [property("--cell"), strength && `rgb(${property(colour)} / ${strength})`].filter(Boolean).map(ground =>
            svg("rect", { x, y, width, height, ...paintOf("fill", ground) }));
    }));
}

/* ---- lines and text ----------------------------------------------------------------------------------------------- */

/* The arrows of the tape, the curves of the step, an icon. */
function copyOf(drawing, from) {
    const r = drawing.getBoundingClientRect(), use = drawing.querySelector("use"),
        shapes = use ? byId(use.getAttribute("href").slice(1)).children : drawing.children;
    return svg("g", moved(r, from, r.width / (use ? 20 : drawing.width.baseVal.value)), ...[...shapes].flatMap(shape => {
        const { fill, stroke, strokeWidth, opacity, strokeLinecap, strokeDasharray } = getComputedStyle(use ? drawing : shape);
        if (fill === "none" && stroke === "none") return [];
        const isDashed = strokeDasharray !== "none" && !shape.hasAttribute("pathLength");
        return [svg(shape.localName, { d: shape.getAttribute("d").replace(/\d+\.\d+/g, x => tenth(Number(x))),
            ...paintOf("fill", fill), ...paintOf("stroke", stroke), "stroke-width": tenth(parseFloat(strokeWidth)),
            ...(opacity !== "1" && { opacity }), ...(strokeLinecap !== "butt" && { "stroke-linecap": strokeLinecap }),
            ...(isDashed && { "stroke-dasharray": strokeDasharray.replaceAll("px", "") }) })];
    }));
}

/* The lines in which a text stands. */
function rowsOfText(node) {
    const range = document.createRange(), lines = [];
    for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const r = range.getBoundingClientRect(), last = lines[lines.length - 1];
        if (!r.width || !isInView(r, node.parentElement)) continue;
        if (last && Math.abs(last.y - r.y) < 2) Object.assign(last, { text: `${last.text} ${word}`, right: r.right });
        else lines.push({ text: word, x: r.x, y: r.y, right: r.right, height: r.height });
    }
    return lines;
}

/* Its width is that of the page: another font gets more space between its letters or less, and keeps their shape. */
function drawText({ text, x, y, right, height }, style, from) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = pen.measureText("x");
    const isBold = Number(style.fontWeight) > 500, scale = height / (up + down),
        isOwn = style.fontFamily !== getComputedStyle(document.body).fontFamily;
    return svg("text", { x: tenth(x - from.x), y: tenth(y - from.y + scale * up), ...paintOf("fill", style.color),
        "font-size": tenth(scale * parseFloat(style.fontSize)), ...(isOwn && { "font-family": typeOf(style.fontFamily) }),
        ...(style.fontStyle !== "normal" && { "font-style": style.fontStyle }), ...(isBold && { "font-weight": style.fontWeight }),
        textLength: tenth(right - x), lengthAdjust: "spacing" }, text);
}
