/* common_program.c - programs run by the shell in a temporary folder: see common_program.h. */
#include "common_program.h"
#include "common.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

const char *program;
char folder[] = "/tmp/tapehead.XXXXXX";
char out[PRINTED_SIZE], complaints[PRINTED_SIZE];

static void setup(void) {
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) { ck_assert_int_eq(shell("chmod -R u+rwx \"$D\" && rm -r \"$D\""), 0); }

TCase *add_program_case(Suite *suite, const char *name) {
    return add_case(suite, name, setup, teardown);
}

/* ---- running it ---------------------------------------------------------------------------- */

static const char *variable(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

/* Nothing here calls setenv, because setenv never frees what it allocates. */
int shell(const char *line) {
    char whole[2304];
    snprintf(whole, sizeof whole, "D=%s; export D; %s", folder, line);
    int status = system(whole);
    ck_assert_msg(WIFEXITED(status), "%s: ended by a signal", line);
    return WEXITSTATUS(status);
}

int run_line(const char *before, const char *after) {
    char line[2048];
    snprintf(line, sizeof line, "B=$(cd %s && pwd); { %s %s \"$B\"/%s %s ; } >$D/out 2>$D/err",
             variable("BUILD", "build"), before, variable("RUNNER", ""), program, after);
    int status = shell(line);
    slurp(path("out"), out, sizeof out);
    slurp(path("err"), complaints, sizeof complaints);
    ck_assert(remove(path("out")) == 0 && remove(path("err")) == 0);
    return status;
}

int run(const char *arguments) { return run_line("", arguments); }

const char *with_replaced(const char *code) {
#ifndef __linux__
    return "";
#endif
    put(path("replaced.c"), code);
    ck_assert_int_eq(shell("cd $D && cc -shared -fPIC replaced.c -o replaced.so"), 0);
    return "ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=$D/replaced.so";
}

bool has_fast_kernels(void) {
#ifdef CORE_ONLY
    return false;
#endif
    const char *isa = getenv("TAPEHEAD_ISA");
    return !isa || strcmp(isa, "plain") != 0;
}

bool has_full_disk(void) { return access("/dev/full", W_OK) == 0; }

int open_terminal(int *slave) {
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    const bool there = terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0;
    *slave = there ? open(ptsname(terminal), O_RDWR | O_NOCTTY) : -1;
    if (*slave >= 0) return terminal;
    if (terminal >= 0) close(terminal);
    return -1;
}

bool has_terminal(const char *test) {
    int slave, terminal = open_terminal(&slave);
    if (terminal < 0) {
        left_out(format("%s: there is no pseudo-terminal here (/dev/pts)", test));
        return false;
    }
    close(slave);
    close(terminal);
    return true;
}

int run_without_reader(const char *arguments) {
    char redirected[1024];
    int ends[2];
    ck_assert(pipe(ends) == 0 && close(ends[0]) == 0 && dup2(ends[1], 9) == 9);
    snprintf(redirected, sizeof redirected, "%s >&9", arguments);
    int status = run(redirected);
    close(ends[1]);
    close(9);
    return status;
}

/* Starts a shell that replaces itself with the program (exec), so the child process is the program.
 */
static pid_t start(const char *environment, const char *arguments) {
    char line[2048];
    snprintf(line, sizeof line, "D=%s; export D; exec env %s %s %s/%s %s", folder, environment,
             variable("RUNNER", ""), variable("BUILD", "build"), program, arguments);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_gt(child, 0);
    return child;
}

static int exit_status(pid_t child) {
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "%s was ended by a signal", program);
    return WEXITSTATUS(status);
}

/* Reads to the end of the pipe. */
static void read_all(int from, char *text, size_t size) {
    size_t n = 0;
    ssize_t got = 1;
    while (got > 0) {
        got = read(from, text + n, size - 1 - n);
        if (got > 0) n += (size_t)got;
    }
    text[n] = '\0';
}

static bool has_ended(pid_t child) {
    siginfo_t end = {0};
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &end, WEXITED | WNOHANG | WNOWAIT), 0);
    return end.si_pid == child;
}

/* The slave stays open here until the program has ended and all its output is read. If it was
 * closed and the program ended, a read could fail because there is no writer, although output is
 * left, and the last output would be lost. */
int run_on_terminal(const char *environment, const char *arguments) {
    char variables[512], redirected[1024];
    size_t n = 0;
    int slave, terminal = open_terminal(&slave);
    ck_assert_int_ge(terminal, 0);
    snprintf(variables, sizeof variables, "-u LC_ALL -u LC_CTYPE -u NO_COLOR %s", environment);
    snprintf(redirected, sizeof redirected, ">%s %s", ptsname(terminal), arguments);
    pid_t child = start(variables, redirected);
    struct pollfd more = {.fd = terminal, .events = POLLIN};
    for (bool ended = false; !ended;) {
        ended = has_ended(child);
        while (poll(&more, 1, ended ? 0 : 10) > 0) {
            ssize_t got = read(terminal, out + n, sizeof out - 1 - n);
            ck_assert_int_gt(got, 0);
            n += (size_t)got;
        }
    }
    out[n] = '\0';
    close(slave);
    close(terminal);
    return exit_status(child);
}

/* Makes a pipe and fills it, except for `but` bytes. A pipe holds pages; their number depends on
 * the system. A write goes to the rest of the last page if it fits there. */
static void make_full_pipe(int ends[2], size_t but) {
    enum { PAGE = 4096 };
    char page[PAGE] = {0};
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], page, PAGE) == PAGE) continue;
    ck_assert_int_eq(read(ends[0], page, PAGE), PAGE);
    ck_assert_int_eq(write(ends[1], page, PAGE - but), (ssize_t)(PAGE - but));
    ck_assert_int_eq(fcntl(ends[1], F_SETFL, 0), 0);
    ck_assert(fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0);
}

static int waiting_in(int pipe) {
    int n = 0;
    ck_assert_int_eq(ioctl(pipe, FIONREAD, &n), 0);
    return n;
}

int run_interrupted(const char *arguments) {
    static char text[1 << 20];
    char redirected[1024];
    int ends[2];
    make_full_pipe(ends, 120);
    int filling = waiting_in(ends[0]);
    snprintf(redirected, sizeof redirected, "%s >$D/out 2>&%d %d>&-", arguments, ends[1], ends[1]);
    pid_t child = start("", redirected);
    close(ends[1]);
    struct pollfd gone = {.fd = ends[0]}; /* the only event is the end of the pipe */
    while (waiting_in(ends[0]) == filling && poll(&gone, 1, 1) == 0) continue;
    kill(child, SIGINT);
    read_all(ends[0], text, sizeof text);
    close(ends[0]);
    snprintf(complaints, sizeof complaints, "%s", text + filling);
    slurp(path("out"), out, sizeof out);
    ck_assert_int_eq(remove(path("out")), 0);
    return exit_status(child);
}

/* stderr must be one line, "NAME: ...". */
static void expect_one_sentence(const char *arguments) {
    size_t n = strlen(program);
    ck_assert_msg(!strncmp(complaints, program, n) && !strncmp(complaints + n, ": ", 2) &&
                      strchr(complaints, '\n') == complaints + strlen(complaints) - 1,
                  "%s %s: \"%s\" is not one sentence", program, arguments, complaints);
}

void expect_misuse(const char *arguments) {
    int status = run(arguments);
    ck_assert_msg(status == 2, "%s %s: exit status %d, %s", program, arguments, status, complaints);
    expect_one_sentence(arguments);
    ck_assert_msg(!*out, "%s %s printed %s", program, arguments, out);
    const char *end = format("; see %s --help\n", program);
    ck_assert_str_eq(complaints + strlen(complaints) - strlen(end), end);
}

void expect_each_misuse(const char *const *arguments) {
    for (; *arguments; arguments++) expect_misuse(*arguments);
}

void expect_failure(const char *arguments, const char *part) {
    int status = run(arguments);
    ck_assert_msg(status == 1, "%s %s: exit status %d, %s", program, arguments, status, complaints);
    expect_one_sentence(arguments);
    ck_assert_msg(strstr(complaints, part) != NULL, "%s %s: \"%s\" is not in %s", program,
                  arguments, part, complaints);
}

/* ---- what it printed and wrote ------------------------------------------------------------- */

double printed(const char *label) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\n%-20s", label);
    const char *found = strstr(out, wanted);
    return found ? atof(found + strlen(wanted)) : (double)NAN;
}

double number_after(const char *text) {
    const char *found = strstr(out, text);
    ck_assert_msg(found != NULL, "no \"%s\" in %s", text, out);
    return atof(found + strlen(text));
}

const char *copy_of_output(void) {
    static char copy[PRINTED_SIZE];
    return strcpy(copy, out);
}

const char *path(const char *name) {
    static char paths[4][256];
    static int next;
    char *text = paths[next++ % 4];
    snprintf(text, sizeof paths[0], "%s/%s", folder, name);
    return text;
}

int files_in_folder(void) {
    int n = -2; /* "." and ".." do not count */
    DIR *directory = opendir(folder);
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory)) n++;
    closedir(directory);
    return n;
}

void slurp(const char *file, char *text, size_t size) {
    FILE *f = fopen(file, "rb");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    text[n] = '\0';
    if (f) fclose(f);
}

void put(const char *file, const char *text) {
    FILE *f = fopen(file, "wb");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

void expect_file(const char *name, const char *text) {
    static char found[PRINTED_SIZE];
    slurp(path(name), found, sizeof found);
    ck_assert_str_eq(found, text);
}
