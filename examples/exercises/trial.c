/* trial.c - a student's function in a process of its own: see trial.h. */
#include "trial.h"

#include "../../tensor/tensor.h"
#include "process.h"
#include "submission.h"
#include "texts.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the place ------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static bool write_text(const char *folder, const char *name,
                                                             const char *format, ...) {
    char path[PATH_SIZE];
    va_list arguments;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    va_start(arguments, format);
    const bool written = vfprintf(file, format, arguments) >= 0;
    va_end(arguments);
    return fclose(file) == 0 && written;
}

/* Splits $CC, or "cc", at its spaces. */
static bool find_compiler(Place *place) {
    static char words[1024];
    const char *cc = getenv("CC");
    int n = 0;
    snprintf(words, sizeof words, "%s", cc && *cc ? cc : "cc");
    for (char *word = strtok(words, " "); word && n < 15; word = strtok(NULL, " "))
        place->compiler[n++] = word;
    return n > 0;
}

static bool runs(const Place *place, char *compiler, char *messages) {
    char version[] = "--version";
    char *const argv[] = {compiler, version, NULL};
    return process_run(argv, messages, COMPILER_SECONDS).end == PROCESS_ENDED;
}

/* make's cc, or else the names that compilers have where there is no cc. */
static bool compiler_runs(Place *place) {
    static char gcc[] = "gcc", clang[] = "clang";
    char messages[PATH_SIZE];
    snprintf(messages, sizeof messages, "%s/messages", place->folder);
    if (runs(place, place->compiler[0], messages)) return true;
    if (getenv("CC") && *getenv("CC")) return false;
    char *const other[] = {gcc, clang};
    char *const cc = place->compiler[0];
    for (int i = 0; i < 2; i++) {
        place->compiler[0] = other[i];
        if (runs(place, other[i], messages)) return true;
    }
    place->compiler[0] = cc;
    return false;
}

bool place_make(Place *place, const char *submission, char *sentence, size_t size) {
    struct stat status;
    *place = (Place){.submission = submission};
    if (stat(submission, &status) != 0 || !S_ISDIR(status.st_mode)) {
        tensor_snprintf(sentence, size, "%s: there is no such folder; --submission names one",
                        submission);
        return false;
    }
    if (!process_make_folder(place->folder, sizeof place->folder)) {
        snprintf(sentence, size, "there is no place for temporary files; TMPDIR may name one");
        return false;
    }
    bool ok = true;
    for (int i = 0; i < num_texts && ok; i++)
        ok = write_text(place->folder, texts[i].name, "%s", (const char *)texts[i].text);
    if (!ok) tensor_snprintf(sentence, size, "%s: nothing can be written there", place->folder);
    else if (!find_compiler(place) || !compiler_runs(place)) {
        tensor_snprintf(sentence, size,
                        "there is no C compiler %s: install gcc or clang, or name yours, CC=gcc-12",
                        place->compiler[0] ? place->compiler[0] : "");
        ok = false;
    }
    if (!ok) place_remove(place);
    return ok;
}

/* Removes a folder of files and of folders of files. */
static void remove_folder(const char *path, int depth) {
    DIR *folder = opendir(path);
    if (!folder) return;
    for (struct dirent *item = readdir(folder); item; item = readdir(folder)) {
        char name[PATH_SIZE];
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s/%s", path, item->d_name);
        if (unlink(name) != 0 && depth > 0) remove_folder(name, depth - 1);
    }
    closedir(folder);
    rmdir(path);
}

void place_remove(Place *place) {
    if (*place->folder) remove_folder(place->folder, 1);
    *place->folder = '\0';
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* "softmax_backward(size[0], array[0], array[1], array[2])" */
static void print_call(const Exercise *e, char *text, size_t size) {
    int sizes = 0, numbers = 0, arrays = 0;
    size_t at = (size_t)snprintf(text, size, "%s(", e->function);
    for (const Parameter *p = e->parameter; p->kind != NO_PARAMETER && at < size; p++) {
        const char *comma = p > e->parameter ? ", " : "";
        if (p->kind == SIZE)
            at += (size_t)snprintf(text + at, size - at, "%ssize[%d]", comma, sizes++);
        else if (p->kind == DOUBLE)
            at += (size_t)snprintf(text + at, size - at, "%snumber[%d]", comma, numbers++);
        else at += (size_t)snprintf(text + at, size - at, "%sarray[%d]", comma, arrays++);
    }
}

/* call.h, by which harness.c calls the function. */
static bool write_call(const Exercise *e, const char *folder) {
    char name[64], call[512];
    exercise_file(e, name, sizeof name);
    print_call(e, call, sizeof call);
    return write_text(
        folder, "call.h",
        "#include \"%s.h\"\n"
        "static void call(const int *size, const double *number, void *const *array) {\n"
        "    (void)number;\n    %s);\n}\n",
        name, call);
}

/* -O0: what is written is what happens, also where it is undefined. The student may have a main. */
static ProcessResult compile(const Place *place, const char *file, const char *folder,
                             const char *program, const char *messages) {
    static const char *const flags[] = {
        "-std=gnu11",
        "-O0",
        "-Wall",
        "-Dmain=students_main",
#ifdef __APPLE__
        "-DNO_WRAP",
#else
        "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free",
#endif
#if !defined __APPLE__ && !defined _WIN32
        "-Wl,--wrap=aligned_alloc,--wrap=memalign,--wrap=posix_memalign,--wrap=reallocarray",
        "-Wl,--wrap=mmap",
#endif
    };
    char here[PATH_SIZE + 2], headers[PATH_SIZE], harness[PATH_SIZE];
    const char *argv[40];
    int n = 0;
    snprintf(here, sizeof here, "-I%s", folder);
    snprintf(headers, sizeof headers, "-I%s", place->folder);
    snprintf(harness, sizeof harness, "%s/harness.c", place->folder);
    for (int i = 0; place->compiler[i]; i++) argv[n++] = place->compiler[i];
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) argv[n++] = flags[i];
    argv[n++] = headers;
    argv[n++] = here;
    argv[n++] = file;
    argv[n++] = harness;
    argv[n++] = "-o";
    argv[n++] = program;
    argv[n++] = "-lm";
    argv[n] = NULL;
    return process_run((char *const *)argv, messages, COMPILER_SECONDS);
}

/* Only what concerns the student's own file. */
static void read_warning(Trial *trial, const char *text, const char *name) {
    submission_warning(text, trial->warning, sizeof trial->warning);
    if (strncmp(trial->warning, name, strlen(name)) != 0) *trial->warning = '\0';
}

static void end(Trial *trial, TrialEnd how, const char *sentence) {
    trial->end = how;
    snprintf(trial->sentence, sizeof trial->sentence, "%s", sentence);
}

void trial_compile(Trial *trial, const Exercise *e, const Place *place) {
    char name[64], file[PATH_SIZE], folder[PATH_SIZE], messages[PATH_SIZE + 16];
    *trial = (Trial){.stopped = -1};
    exercise_file(e, name, sizeof name);
    snprintf(file, sizeof file, "%s%s/%s.c", *place->submission == '-' ? "./" : "",
             place->submission, name);
    if (submission_look(file, e->function) != SUBMISSION_WRITTEN) {
        trial->end = TRIAL_EMPTY;
        return;
    }
    if (!process_make_folder_in(place->folder, name, folder, sizeof folder) ||
        !write_call(e, folder)) {
        end(trial, TRIAL_IMPOSSIBLE, "the folder of temporary files is full");
        return;
    }
    snprintf(trial->program, sizeof trial->program, "%.4000s/program.exe", folder);
    snprintf(trial->printed, sizeof trial->printed, "%.4000s/printed", folder);
    snprintf(messages, sizeof messages, "%s/messages", folder);
    const ProcessResult result = compile(place, file, folder, trial->program, messages);
    char *text = submission_read(messages, 1 << 20);
    if (result.end == PROCESS_ENDED && result.status == 0) {
        read_warning(trial, text ? text : "", name);
    } else if (result.end == PROCESS_TIMED_OUT) {
        end(trial, TRIAL_NO_COMPILE, "the compiler did not end");
    } else {
        trial->end = TRIAL_NO_COMPILE;
        submission_error(text ? text : "", e->function, trial->sentence, sizeof trial->sentence);
    }
    free(text);
}

/* ---- calls and results -------------------------------------------------------------------------
 */

static int32_t access_to(const Parameter *p) {
    if (p->kind == STATE) return CARRIED;
    return p->kind == OUTPUT ? WRITTEN : ONLY_READ;
}

static bool write_call_bytes(const Exercise *e, const Call *call, bool filled, FILE *file) {
    CallHeader header = {.carries = call->carries, .measured = call->measured, .filled = filled};
    memcpy(header.size, call->size, sizeof call->size);
    memcpy(header.number, call->number, sizeof call->number);
    while (exercise_array(e, header.arrays)) {
        const Parameter *p = exercise_array(e, header.arrays);
        header.bytes[header.arrays] =
            (int32_t)call_length(e, call, header.arrays) * (int32_t)element_size(p);
        header.access[header.arrays++] = access_to(p);
    }
    bool ok = fwrite(&header, sizeof header, 1, file) == 1;
    for (int i = 0; i < header.arrays && ok; i++)
        ok = fwrite(call->array[i], 1, (size_t)header.bytes[i], file) == (size_t)header.bytes[i];
    return ok;
}

/* After the calls comes the first of them twice more: with outputs that are filled with a pattern,
 * which ones does the function never write to? And as it was: is the result the same? */
static bool write_calls(const Exercise *e, const Calls *calls, const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool ok = true;
    for (int i = 0; i < calls->n && ok; i++) ok = write_call_bytes(e, &calls->call[i], false, file);
    ok = ok && write_call_bytes(e, &calls->call[0], true, file) &&
         write_call_bytes(e, &calls->call[0], false, file);
    return fclose(file) == 0 && ok;
}

/* The outputs of one call; false at the end of the file. */
static bool read_outputs(const Exercise *e, Call *call, FILE *file) {
    bool ok = true;
    for (int i = 0; exercise_array(e, i) && ok; i++) {
        const size_t n = (size_t)call_length(e, call, i);
        if (is_output(exercise_array(e, i)))
            ok = fread(call->array[i], sizeof(double), n, file) == n;
    }
    return ok;
}

static int32_t differing(const Exercise *e, const Call *a, const Call *b) {
    int32_t bits = 0;
    for (int i = 0; exercise_array(e, i); i++)
        if (is_output(exercise_array(e, i)) &&
            memcmp(a->array[i], b->array[i], (size_t)call_length(e, a, i) * sizeof(double)) != 0)
            bits |= 1 << i;
    return bits;
}

/* The two calls after the last one; false at the end of the file. */
static bool read_extra(Trial *trial, const Exercise *e, const CallResult *result, FILE *file) {
    Call again;
    if (!call_copy(e, &again, &trial->calls.call[0])) return false;
    const bool ok = read_outputs(e, &again, file);
    if (result->call == trial->calls.n) trial->unwritten = result->unwritten;
    else if (ok && trial->result[0].call == 0)
        trial->unsteady = differing(e, &again, &trial->calls.call[0]);
    call_free(&again);
    return ok;
}

/* Reads the results and returns the number of the last call; ALL_DONE if the function has returned
 * from every call. The student's program may have written anything to the file. */
static int read_results(Trial *trial, const Exercise *e, const char *path) {
    FILE *file = fopen(path, "rb");
    CallResult result;
    int last = -2;
    while (file && fread(&result, sizeof result, 1, file) == 1) {
        last = result.call;
        if (last == trial->calls.n || last == trial->calls.n + 1) {
            if (!read_extra(trial, e, &result, file)) break;
            continue;
        }
        if (last < 0 || last > trial->calls.n) break;
        if (!read_outputs(e, &trial->calls.call[last], file)) break;
        trial->result[last] = result;
    }
    if (file) fclose(file);
    return last;
}

/* The first call of the next input. */
static int next_input(const Calls *calls, int at) {
    const int input = calls->call[at].input;
    while (at < calls->n && calls->call[at].input == input) at++;
    return at;
}

static int first_undone(const Trial *trial, int from) {
    while (from < trial->calls.n && trial->result[from].call >= 0) from++;
    return from;
}

/* harness.c makes the file of results before it calls the function. */
static bool exists(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file;
}

bool trial_has_results(const Trial *trial) {
    for (int i = 0; i < trial->calls.n; i++)
        if (trial->result[i].call >= 0) return true;
    return false;
}

/* The files of a run. */
typedef struct {
    char calls[PATH_SIZE + 32], results[PATH_SIZE + 32];
} Files;

/* Why did the program stop, when it had to make another call? */
static void explain_end(Trial *trial, ProcessResult ended, const Files *files) {
    if (ended.end == PROCESS_TIMED_OUT) trial->end = TRIAL_TIMEOUT;
    else if (ended.end == PROCESS_KILLED)
        end(trial, TRIAL_CRASH, process_signal_text(ended.status));
    else if (!exists(files->results)) end(trial, TRIAL_IMPOSSIBLE, "the program cannot be started");
    else trial->end = TRIAL_EXIT;
}

/* Makes the calls from `first` to `last` - 1. Returns the call at which the program stopped, or
 * `last`. */
static int run(Trial *trial, const Exercise *e, Files *files, int first, int last, int seconds) {
    char from[16], to[16];
    char *argv[] = {trial->program, files->calls, files->results, from, to, NULL};
    snprintf(from, sizeof from, "%d", first);
    snprintf(to, sizeof to, "%d", last < trial->calls.n ? last : last + 2); /* the extra calls */
    remove(files->results);
    const ProcessResult ended = process_run(argv, trial->printed, seconds);
    const int read = read_results(trial, e, files->results);
    const int stopped = first_undone(trial, first);
    if (read == ALL_DONE || stopped >= last) return last;
    if (ended.end == PROCESS_TIMED_OUT) trial->timeouts++;
    if (trial->stopped < 0) {
        trial->stopped = stopped;
        explain_end(trial, ended, files);
    }
    return stopped;
}

/* Copies the calls, and writes them for the program; false if there is no room. */
static bool begin(Trial *trial, const Exercise *e, const Calls *calls, Files *files) {
    snprintf(files->calls, sizeof files->calls, "%s.calls", trial->program);
    snprintf(files->results, sizeof files->results, "%s.results", trial->program);
    trial->calls = calls_copy(e, calls);
    trial->result = calloc((size_t)calls->n + 1, sizeof *trial->result);
    if (!trial->calls.n || !trial->result || !write_calls(e, calls, files->calls)) {
        end(trial, TRIAL_IMPOSSIBLE,
            "there is no memory, or the folder of temporary files is full");
        return false;
    }
    for (int i = 0; i < calls->n; i++) trial->result[i].call = -1;
    return true;
}

/* After an endless loop only if some call has returned. */
static bool goes_on(const Trial *trial) {
    if (trial->end == TRIAL_IMPOSSIBLE || trial->timeouts >= MOST_TIMEOUTS) return false;
    return trial->timeouts == 0 || trial_has_results(trial);
}

void trial_compute(Trial *trial, const Exercise *e, const Calls *calls) {
    Files files;
    if (!begin(trial, e, calls, &files)) return;
    for (int at = 0; at < calls->n && goes_on(trial);) {
        const int seconds = trial->timeouts ? MORE_SECONDS : TRIAL_SECONDS;
        at = run(trial, e, &files, at, calls->n, seconds);
        if (at < calls->n) at = next_input(calls, at);
    }
    remove(files.results);
}

void trial_compute_apart(Trial *trial, const Exercise *e, const Calls *calls) {
    Files files;
    if (!begin(trial, e, calls, &files)) return;
    for (int at = 0; at < calls->n && goes_on(trial); at = next_input(calls, at))
        run(trial, e, &files, at, next_input(calls, at), MORE_SECONDS);
    remove(files.results);
}

void trial_print_again(const Trial *trial, const Exercise *e, const Calls *given, int i) {
    char calls[PATH_SIZE + 32], results[PATH_SIZE + 32], first[] = "0", end[] = "1";
    char program[PATH_SIZE];
    Call call;
    if (!call_copy(e, &call, &given->call[i])) return;
    for (int k = 0; call.carries && exercise_array(e, k); k++)
        if (exercise_array(e, k)->kind == STATE)
            memcpy(call.array[k], trial->calls.call[i - 1].array[k],
                   (size_t)call_length(e, &call, k) * sizeof(double));
    call.carries = false;
    snprintf(program, sizeof program, "%s", trial->program);
    snprintf(calls, sizeof calls, "%s.calls", program);
    snprintf(results, sizeof results, "%s.results", program);
    FILE *file = fopen(calls, "wb");
    const bool written = file && write_call_bytes(e, &call, false, file);
    if (file && fclose(file) == 0 && written) {
        char *argv[] = {program, calls, results, first, end, NULL};
        process_run(argv, trial->printed, MORE_SECONDS);
        remove(results);
    }
    call_free(&call);
}

void trial_free(Trial *trial) {
    calls_free(&trial->calls);
    free(trial->result);
    trial->result = NULL;
}
