/* test_locale.c - numbers in a program that has called setlocale(LC_ALL, "") where people write
 * 0,5. Every text of the library is the same as in the C locale.
 *
 * Each test writes its texts twice, with the point of the C locale and with another one, and
 * compares them. */
#include "../../../nn/nn.h"
#include "../../../tensor/internal.h"
#include "../common.h"
#include "common_locale.h"
#include "../common_program.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A comma, and Persian's point, which has two bytes. */
static const char *const points[] = {",", "\xd9\xab"};

static void point_teardown(void) {
    setlocale(LC_NUMERIC, "C");
    frame_teardown();
}

/* glibc takes the locale that common_locale.c makes, so there the tests must not pass without it.
 */
static void set_point(const char *point) {
    const bool set = set_decimal_point(point);
#ifdef __GLIBC__
    ck_assert(set);
#else
    if (!set) left_out(format("no locale writes 0%s5", point));
#endif
}

/* Writes texts to a file. */
typedef void Write(FILE *file);

static void expect_the_same(Write *write, const char *point) {
    char *text[2] = {NULL, NULL};
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        FILE *file = open_memstream(&text[i], &size[i]);
        tensor_manual_seed(0);
        if (i == 1) set_point(point);
        write(file);
        fclose(file);
    }
    ck_assert_ptr_nonnull(strstr(text[0], "0.")); /* there is a number in it */
    size_t same = 0;
    while (text[0][same] && text[0][same] == text[1][same]) same++;
    ck_assert_msg(size[0] == same && size[1] == same, "after %zu bytes: %.40s; expected: %.40s",
                  same, text[1] + same, text[0] + same);
    free(text[0]);
    free(text[1]);
}

/* ---- what is written ------------------------------------------------------------------------- */

static void write_tensors(FILE *file) {
    Tensor *x[] = {tensor_randn(SHAPE(2, 3)), tensor_full(SCALAR, 1e-9), tensor_full(SCALAR, -0.5)};
    for (int i = 0; i < 3; i++) {
        ck_assert(tensor_print(x[i], file));
        tensor_release(x[i]);
    }
}

static void write_modules(FILE *file) {
    void *module[] = {nn_dropout_new(0.1), nn_layer_norm_new(SHAPE(2, 3)),
                      nn_linear_new(2, 3, true)};
    Optimizer *optimizer[] = {nn_sgd_new(module[2], (SGDConfig){.lr = 0.25, .momentum = 0.5}),
                              nn_adamw_new(module[2], (AdamWConfig){.lr = 1.5e-7})};
    nn_print_float(1.25, file);
    nn_print_float(1.25e-9, file);
    for (int i = 0; i < 3; i++) ck_assert(nn_print(module[i], file));
    for (int i = 0; i < 2; i++) ck_assert(nn_print(optimizer[i], file));
    for (int i = 0; i < 2; i++) nn_free(optimizer[i]);
    for (int i = 0; i < 3; i++) nn_free(module[i]);
}

static void write_tape(FILE *file) {
    Tensor *x = ag_requires_grad(tensor_randn(SHAPE(2, 3)));
    tape_begin();
    tape_keep_grads(true);
    ck_assert(
        ag_backward(ag_mean(ag_layer_norm(ag_scale(ag_to(x, F32), 1.0 / 3), NULL, NULL, 1e-5))));
    ck_assert(tape_write_json(file));
    ck_assert(tape_print(file));
    tape_end();
    tensor_release(x);
}

static void write_error(FILE *file, bool failed) {
    ck_assert(failed && tensor_error());
    fprintf(file, "%s\n", tensor_error());
    tensor_clear_error();
}

/* Its gradient lacks one of the two factors. */
static Tensor *wrong_square(Tensor **in, void *unused) {
    (void)unused;
    return ag_mul(in[0], ag_detach(in[0]));
}

static void write_errors(FILE *file) {
    Tensor *x = ag_requires_grad(tensor_full(SCALAR, 0.5));
    Linear *linear = nn_linear_new(2, 3, true);
    write_error(file, !tensor_uniform(0.75, 0.5, SHAPE(2, 3)));
    write_error(file, !tensor_normal(0, -0.5, SHAPE(2)));
    write_error(file, !tensor_bernoulli(1.5, SHAPE(2)));
    write_error(file, !tensor_arange(0.5, 2.5, -0.125));
    write_error(file, !tensor_full_of(SHAPE(2), -1.5e30, I64));
    write_error(file, !nn_dropout_new(-0.5));
    write_error(file, !nn_adamw_new(linear, (AdamWConfig){.lr = -0.5}));
    tape_begin();
    write_error(file, !ag_dropout(x, 1.5));
    tape_end();
    write_error(file, !ag_gradcheck(wrong_square, &x, 1, NULL, (GradcheckOptions){0}));
    tensor_release(x);
    nn_free(linear);
}

static Write *const writers[] = {write_tensors, write_modules, write_tape, write_errors};
enum { WRITERS = COUNT(writers) };

CASE("texts", .setup = frame_setup, .teardown = point_teardown)
LOOP_TEST(every_text_has_a_point, 2 * WRITERS) { expect_the_same(writers[_i / 2], points[_i % 2]); }

/* ---- tensor_snprintf ------------------------------------------------------------------------- */

/* Only numbers change: a comma of a word, a shape or a locale's point in a string stays. */
LOOP_TEST(only_the_points_of_numbers_change, 2) {
    char text[200], cut[9];
    const char *const point = points[_i];
    set_point(point);
    tensor_snprintf(text, sizeof text, "%d%%, %s: %g, %6.2f, %s, %.*e, %g%s %c%ld", 5,
                    "a,1,5\xd9\xab", 0.5, -1.25, tensor_shape_text(SHAPE(2, 3)), 3, 1.5e-300, 1e6,
                    ",", 'x', 7L);
    ck_assert_str_eq(text, "5%, a,1,5\xd9\xab: 0.5,  -1.25, (2, 3), 1.500e-300, 1e+06, x7");
    ck_assert_int_eq(tensor_snprintf(text, sizeof text, "%g and %g", 0.5, 1.5), 11);
    ck_assert_str_eq(text, "0.5 and 1.5");
    tensor_snprintf(text, sizeof text, "%g, %g%s", 0.5, 2.0, point); /* the string's stays */
    ck_assert_str_eq(text, format("0.5, 2%s", point));
    ck_assert_int_eq(tensor_snprintf(text, sizeof text, "%f %E %a", HUGE_VAL, 0.0, 0.5), 23);
    ck_assert_int_ge(tensor_snprintf(cut, sizeof cut, "%.1f %.9f", 0.5, 0.5), 15);
    ck_assert_int_eq(strncmp(cut, "0.5 ", 4), 0);
}

/* ---- what is read ---------------------------------------------------------------------------- */

PROGRAM_CASE("files", .inner_setup = frame_setup, .inner_teardown = point_teardown)
LOOP_TEST(files_are_read_and_written, 2) {
    Tensor *x = tensor_randn(SHAPE(2, 3));
    TensorDict *dict = tensor_dict_new();
    set_point(points[_i]);
    ck_assert(tensor_save_npy(x, path("x.npy")));
    Tensor *y = tensor_load_npy(path("x.npy"));
    ck_assert(tensor_dict_set(dict, "x", x) &&
              tensor_save_safetensors(dict, path("x.safetensors")));
    TensorDict *again = tensor_load_safetensors(path("x.safetensors"));
    ck_assert_ptr_nonnull(again);
    ck_assert(tensor_allclose(x, y, 0, 0) && tensor_allclose(x, tensor_dict_get(again, "x"), 0, 0));
    RELEASE(x, y);
    tensor_dict_free(dict);
    tensor_dict_free(again);
}

int main(void) { return run_tests("locale"); }
