/* target_flags.c - for libFuzzer: command lines.
 *
 * An input is a list of arguments; each ends with a NUL. Either the flags are read and every value
 * is in its range, or the program prints one error message and calls exit. The linker replaces exit
 * by a function here that jumps back. */
#include "common.h"

#include "../../examples/common/flags.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static jmp_buf ended;
static int exit_status;

void __real_exit(int status) __attribute__((noreturn));
void __wrap_exit(int status) __attribute__((noreturn));
static bool parsing;

void __wrap_exit(int status) {
    if (!parsing) __real_exit(status); /* a call of libFuzzer */
    exit_status = status;
    longjmp(ended, 1);
}

static const char *text;
static const char *output;
static const char *other;
static const char *choice;
static int64_t integer, wide;
static uint64_t seed;
static double number, positive;
static bool on;

static const Flag flags[] = {
    TEXT_FLAG("--text", text, "FILE", "none", "A file that is read."),
    OUTPUT_FLAG("--save", output, "FILE.safetensors", "A file that is written."),
    OUTPUT_FLAG("--plot", other, "FILE.svg", "Another one,\nin two lines."),
    CHOICE_FLAG("--attention", choice, "dot|additive", "One of two."),
    INTEGER_FLAG("--steps", integer, 0, 1e7, "from 0 to 10^7", "A whole number."),
    INTEGER_FLAG("--wide", wide, -0x1p53, 0x1p53, "from -2^53 to 2^53", "Another one."),
    SEED_FLAG("--seed", seed, "Of 64 bits."),
    NUMBER_FLAG("--number", number, -1e300, 1e300, "of any sign", "A number."),
    NUMBER_FLAG("--lr", positive, 1e-300, 1e300, "above 0", "Another one."),
    SWITCH_FLAG("--quiet", on, "A switch."),
};

static void set_defaults(void) {
    text = NULL;
    output = NULL;
    other = NULL;
    choice = "dot";
    integer = 1;
    wide = 1;
    seed = 1;
    number = 1;
    positive = 1;
    on = false;
}

static void check_values(void) {
    if (integer < 0 || integer > 10000000) fault("--steps is out of its range");
    if (wide < -(1LL << 53) || wide > 1LL << 53) fault("--wide is out of its range");
    if (!(fabs(number) <= 1e300)) fault("--number is out of its range");
    if (!(positive >= 1e-300 && positive <= 1e300)) fault("--lr is out of its range");
    if (strcmp(choice, "dot") != 0 && strcmp(choice, "additive") != 0)
        fault("--attention is none of its words");
    const char *const texts[] = {text, output, other};
    for (int i = 0; i < 3; i++)
        if (texts[i] && !*texts[i]) fault("a text is empty");
    struct stat status; /* two flags may name one device or pipe */
    if (output && other && !strcmp(output, other) && stat(output, &status) != 0)
        fault("two outputs are one file");
}

enum { ARGUMENTS = 16, BYTES = 1024 };

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size) {
    static char copy[BYTES + 1], program[] = "fuzz", *argument[ARGUMENTS + 1] = {program};
    static volatile int n;
    if (size > BYTES) return 0;
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    n = 1;
    for (size_t at = 0; at < size && n < ARGUMENTS; at += strlen(copy + at) + 1)
        argument[n++] = copy + at;
    argument[n] = NULL;
    set_defaults();
    parsing = true;
    if (setjmp(ended) == 0) {
        flags_parse(n, argument, "fuzz", "a table with flags of each kind", flags,
                    sizeof flags / sizeof *flags);
        check_values();
    } else if (exit_status != 0 && exit_status != 2) {
        fault("the exit status is neither 0, for --help and --version, nor 2, for misuse");
    }
    parsing = false;
    return 0;
}
