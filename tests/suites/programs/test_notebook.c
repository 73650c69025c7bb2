/* test_notebook.c - does build/notebook still print what the notebook printed?
 *
 * golden/notebook.txt is the whole output. It was compared with the cells of the original notebook,
 * and with generate_notebook.py, which runs the same cells in PyTorch. The program must print the
 * same bytes and write the same picture. test_programs.c tests flags and outputs. */
#include <check.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common.h"
#include "../common_program.h"

/* The targets are computed with sin and pow of the C library, and only glibc's have PyTorch's last
 * bits; and the plain kernels add in double, where PyTorch adds floats. So with another library,
 * musl for example, and with the plain kernels, the sixth decimal of a loss may differ by three,
 * and the last digit of a number such as 1.5530e-02 by two. */
static bool loss_agrees(const char *printed, int epoch) {
    static const double shown[] = {31.119806, 10.461807, 10.461460, 10.461108, 10.460758};
    return epoch >= 1 && epoch <= 5 && fabs(atof(printed) - shown[epoch - 1]) < 3.5e-6;
}

static bool agrees(const char *printed, const char *line) {
    int epoch, words = 0;
    if (sscanf(line, "epoch %d, loss %n", &epoch, &words) == 1 && words > 0)
        return !strncmp(printed, line, (size_t)words) && loss_agrees(printed + words, epoch);
    while (*line) {
        if (isdigit((unsigned char)*line) && isdigit((unsigned char)*printed)) {
            char *after_x;
            char *after_y;
            const double x = strtod(printed, &after_x), y = strtod(line, &after_y);
            const char *exponent = memchr(line, 'e', (size_t)(after_y - line));
            const double last = exponent ? pow(10, atoi(exponent + 1) - 4) : 0;
            if (fabs(x - y) > 2.01 * last + 3e-45) return false; /* two of the smallest floats */
            printed = after_x;
            line = after_y;
        } else if (*printed++ != *line++) return false;
    }
    return true;
}

/* Must every bit be PyTorch's? */
static bool is_exact(void) {
#ifdef __GLIBC__
    return has_fast_kernels();
#else
    return false;
#endif
}

/* Does the output begin with this line? */
static bool begins_with(const char *printed, const char *line) {
    return is_exact() ? !strncmp(printed, line, strlen(line)) : agrees(printed, line);
}

PROGRAM_CASE("notebook")
TEST(the_whole_output) {
    ck_assert_int_eq(run("--plot $D/plot.svg --log $D/log.csv"), 0);
    ck_assert_str_eq(complaints, "");
    FILE *expected = fopen("tests/golden/notebook.txt", "r");
    ck_assert_msg(expected != NULL, "run me from the root of the repository");
    char line[256];
    const char *printed = out;
    int number = 0;
    while (fgets(line, sizeof line, expected)) {
        number++;
        const size_t length = strcspn(printed, "\n");
        ck_assert_msg(begins_with(printed, line), "line %d is\n%.*s\nand should be\n%s", number,
                      (int)length, printed, line);
        printed += length + (printed[length] != '\0');
    }
    fclose(expected);
    ck_assert_msg(!*printed, "it goes on after line %d: %s", number, printed);
    ck_assert_int_gt(number, 500);
    if (is_exact()) ck_assert_int_eq(shell("cmp $D/plot.svg tests/golden/notebook.svg"), 0);
    slurp(path("log.csv"), out, sizeof out);
    ck_assert_int_eq(strncmp(out, "step,loss\n1,31.1198", 19), 0);
    ck_assert_int_eq(shell("test $(wc -l <$D/log.csv) = 6"), 0);
    ck_assert_int_eq(files_in_folder(), 2);
}

/* With another seed the numbers are different, but the loss falls, too. The losses of the original
 * are then not expected. */
TEST(other_numbers) {
    ck_assert_int_eq(run("--seed 3 --steps 9 --lr 0.01"), 0);
    ck_assert_ptr_null(strstr(out, "expect"));
    const char *first = strstr(out, "epoch 1, loss ");
    const char *last = strstr(out, "epoch 9, loss ");
    ck_assert(first && last && atof(last + 14) < atof(first + 14));
    ck_assert_ptr_null(strstr(out, "epoch 10"));
    expect_failure("--lr 1e300",
                   "notebook: step 2: the loss is not a finite number: try a smaller --lr");
}

int main(void) {
    program = "notebook";
    return run_tests("notebook");
}
