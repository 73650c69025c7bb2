/* trial.c - a student's function in a process of its own: see trial.h. */
#include "trial.h"

#include "process.h"
#include "scratch.h"
#include "submission.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- compiling ------------------------------------------------------------------------------- */

/* Only what concerns the student's own file. */
static void read_warning(Trial *trial, const Exercise *e, const char *text, const char *name) {
    submission_warning(text, e->function, trial->warning, sizeof trial->warning);
    if (strncmp(trial->warning, name, strlen(name)) != 0) *trial->warning = '\0';
}

__attribute__((format(printf, 3, 4))) static void end(Trial *trial, TrialEnd how,
                                                      const char *sentence, ...) {
    va_list arguments;
    va_start(arguments, sentence);
    trial->end = how;
    vsnprintf(trial->sentence, sizeof trial->sentence, sentence, arguments);
    va_end(arguments);
}

/* Is there a file that may be compiled? If not, the trial ends. */
static bool look(Trial *trial, const Exercise *e, const Place *place) {
    char file[NAME_SIZE], path[PATH_SIZE];
    char *const sentence = trial->sentence;
    const Submission *from = &place->submission;
    place_file(from, e, file);
    trial->of_file = true;
    if (submission_refusal(from->folder, file, sentence, sizeof trial->sentence)) {
        trial->end = TRIAL_REFUSED;
        return false;
    }
    if (place_is_missing(from, e, sentence, sizeof trial->sentence)) {
        trial->end = TRIAL_EMPTY;
        return false;
    }
    trial->of_file = false;
    place_path(place, "source", exercise_file(e), ".c", path);
    if (!submission_is_written(path, e->function)) {
        trial->end = TRIAL_EMPTY;
        return false;
    }
    return true;
}

static void end_starved(Trial *trial) {
    end(trial, TRIAL_IMPOSSIBLE, "the machine was busy with other programs: mark it again later");
}

/* Is the function missing among several, or static? Then the trial ends. */
static bool hides(Trial *trial, const Exercise *e, const Place *place) {
    char path[PATH_SIZE];
    Definition d;
    place_path(place, "source", exercise_source(e), ".c", path);
    char *text = submission_read(path, SUBMISSION_MOST);
    const bool is_there = text && submission_definition(text, 0, e->function, &d);
    if (is_there) text[d.open] = '\0';
    const bool is_static = is_there && strstr(text + d.begin, "static ");
    const bool is_missing = e->file && !is_there;
    free(text);
    if (is_missing) end(trial, TRIAL_NO_COMPILE, "there is no function %s in it", e->function);
    if (is_static)
        end(trial, TRIAL_NO_COMPILE, "%s is static: no other file can call it", e->function);
    return is_missing || is_static;
}

/* The file does not compile, or the machine has failed. */
static void explain_compiler(Trial *trial, const Exercise *e, const Place *place,
                             ProcessResult result, const char *text, const char *name) {
    if (result.end == PROCESS_STARVED) {
        end_starved(trial);
        return;
    }
    submission_error(text, e->function, trial->sentence, sizeof trial->sentence);
    trial->end = TRIAL_NO_COMPILE;
    if (hides(trial, e, place)) return;
    if (result.end == PROCESS_ENDED && strncmp(trial->sentence, name, strlen(name)) == 0) return;
    if (!place_can_compile(place, e)) end(trial, TRIAL_IMPOSSIBLE, "the compiler fails");
    else if (result.end == PROCESS_TIMED_OUT)
        end(trial, TRIAL_NO_COMPILE, "the compiler did not end");
}

/* An #include that is not there is no function's: of this file none can be compiled. */
static bool lacks_header(const char *messages) {
    return strstr(messages, "compilation terminated.") || strstr(messages, "file not found");
}

void trial_compile(Trial *trial, const Exercise *e, const Place *place) {
    enum { MESSAGES = 1 << 18 };
    char folder[PATH_SIZE];
    *trial = (Trial){.stopped = -1, .place = place};
    if (!look(trial, e, place)) return;
    const char *name = exercise_file(e);
    if (!process_make_folder_in(place->folder, name, true, folder, sizeof folder) ||
        !place_has_room(place, 1 << 16)) {
        end(trial, TRIAL_IMPOSSIBLE, "the folder of temporary files is full");
        return;
    }
    if (!place_prepare(place, e)) {
        end(trial, TRIAL_IMPOSSIBLE, "the compiler fails");
        return;
    }
    if (e->file && place->endless) {
        end(trial, TRIAL_NO_COMPILE, "the compiler did not end");
        return;
    }
    place_path(place, name, "program.exe", "", trial->program);
    place_path(place, name, "printed", "", trial->printed);
    char *messages = calloc(MESSAGES, 1);
    if (!messages) {
        end(trial, TRIAL_IMPOSSIBLE, "there is no memory");
        return;
    }
    if (place_reaches_out(place, e, trial->sentence, sizeof trial->sentence)) {
        trial->end = TRIAL_REFUSED;
        free(messages);
        return;
    }
    ProcessResult result = e->file && place->whole ? place_link_whole(place, e, messages, MESSAGES)
                                                   : place_compile(place, e, messages, MESSAGES);
    for (int less = 1; e->file && result.end == PROCESS_ENDED && result.status != 0; less++) {
        if (lacks_header(messages) || !scratch_write_less(place, e, less)) break;
        result = place_compile(place, e, messages, MESSAGES);
    }
    trial->static_bytes = place_static_bytes(place, e);
    process_keep(folder, trial->program);
    const char *file = e->file ? e->file : name;
    if (process_succeeded(result)) read_warning(trial, e, messages, name);
    else explain_compiler(trial, e, place, result, messages, file);
    free(messages);
}

/* ---- calls and results -------------------------------------------------------------------------
 */

static int32_t access_to(const Parameter *p) {
    if (p->kind == STATE) return CARRIED;
    return p->kind == OUTPUT ? WRITTEN : ONLY_READ;
}

/* The numbers that the function shows in this call are wanted. */
static bool shows(const Call *call) { return call->dy == DENSE && !call->lone; }

/* `header` says what is special about this call. */
static bool write_call_bytes(const Exercise *e, const Call *call, CallHeader header, FILE *file) {
    header.carries = call->carries;
    header.measured = call->measured;
    header.shows = shows(call) && !header.filled && !header.guards;
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

/* After the calls comes the first of them with a dense dy four times more: with outputs that are
 * filled with a pattern, which ones does the function never write to? As it was: is the result the
 * same? And between large numbers of both signs: does it compare what stands beside an array? */
static const CallHeader extra[] = {
    {.filled = true}, {.filled = false}, {.guards = 1}, {.guards = -1}};
enum { FILLED, SAME, EXTRA = sizeof extra / sizeof *extra };

static int first_dense(const Calls *calls) {
    int i = 0;
    while (i + 1 < calls->n && calls->call[i].dy != DENSE) i++;
    return i;
}

static bool write_calls(const Exercise *e, const Calls *calls, const char *path) {
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool ok = true;
    for (int i = 0; i < calls->n && ok; i++)
        ok = write_call_bytes(e, &calls->call[i], (CallHeader){0}, file);
    for (int i = 0; i < EXTRA && ok; i++)
        ok = write_call_bytes(e, &calls->call[first_dense(calls)], extra[i], file);
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

/* A name that the marker may print. */
static void make_plain(char name[SHOWN_NAME]) {
    name[SHOWN_NAME - 1] = '\0';
    for (; *name; name++)
        if (!isprint((unsigned char)*name)) *name = '?';
}

/* Reads the numbers that the function has shown in a call, and keeps them or not; false at the end
 * of the file. */
static bool read_shown(Trial *trial, const CallResult *result, int call, bool keeps, FILE *file) {
    if (result->shown < 0 || result->shown > MOST_SHOWN_NUMBERS) return false;
    for (int i = 0; i < result->shown; i++) {
        ShownInCall this = {.call = call};
        if (fread(&this.number, sizeof this.number, 1, file) != 1) return false;
        if (!keeps) continue;
        ShownInCall *longer =
            realloc(trial->shown, ((size_t)trial->num_shown + 1) * sizeof *longer);
        if (!longer) return false;
        make_plain(this.number.name);
        trial->shown = longer;
        longer[trial->num_shown++] = this;
    }
    return true;
}

static int32_t differing(const Exercise *e, const Call *a, const Call *b) {
    int32_t bits = 0;
    for (int i = 0; exercise_array(e, i); i++)
        if (is_output(exercise_array(e, i)) &&
            memcmp(a->array[i], b->array[i], (size_t)call_length(e, a, i) * sizeof(double)) != 0)
            bits |= 1 << i;
    return bits;
}

int32_t trial_differing(const Trial *a, const Trial *b, const Exercise *e) {
    int32_t bits = 0;
    for (int i = 0; i < a->calls.n && i < b->calls.n; i++)
        if (a->result[i].call >= 0 && b->result[i].call >= 0)
            bits |= differing(e, &a->calls.call[i], &b->calls.call[i]);
    return bits;
}

/* One of the calls after the last one; false at the end of the file. */
static bool read_extra(Trial *trial, const Exercise *e, const CallResult *result, FILE *file) {
    Call again;
    const int first = first_dense(&trial->calls), which = result->call - trial->calls.n;
    const Call *before = &trial->calls.call[first];
    if (!call_copy(e, &again, before)) return false;
    const bool ok =
        read_outputs(e, &again, file) && read_shown(trial, result, trial->calls.n, false, file);
    if (which == FILLED) trial->unwritten = result->unwritten;
    else if (ok && trial->result[first].call == first && which == SAME)
        trial->unsteady = differing(e, &again, before);
    else if (ok && trial->result[first].call == first && !trial->unsteady)
        trial->looks_outside |= differing(e, &again, before);
    call_free(&again);
    return ok;
}

/* Reads the results. The student's program may have written anything to the file: only outputs for
 * a call that was to be made are taken, and diagnosis.c compares all of them. */
static void read_results(Trial *trial, const Exercise *e, const char *path) {
    FILE *file = fopen(path, "rb");
    CallResult result;
    while (file && fread(&result, sizeof result, 1, file) == 1) {
        const int call = result.call;
        if (call < 0 || call >= trial->calls.n + EXTRA) break;
        if (call >= trial->calls.n) {
            if (!read_extra(trial, e, &result, file)) break;
            continue;
        }
        if (!read_outputs(e, &trial->calls.call[call], file)) break;
        const bool again = trial->result[call].call >= 0; /* not by harness.c */
        if (!read_shown(trial, &result, call, !again, file)) break;
        trial->result[call] = result;
    }
    if (file) fclose(file);
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

bool trial_has_results(const Trial *trial) {
    for (int i = 0; i < trial->calls.n; i++)
        if (trial->result[i].call >= 0) return true;
    return false;
}

/* The files of a run. */
typedef struct {
    char calls[PATH_SIZE + 32], results[PATH_SIZE + 32];
} Files;

static void name_files(const Trial *trial, Files *files) {
    snprintf(files->calls, sizeof files->calls, "%s.calls", trial->program);
    snprintf(files->results, sizeof files->results, "%s.results", trial->program);
}

/* The bytes of all results. */
static int64_t most_results(const Trial *trial, const Exercise *e) {
    int64_t bytes = 0;
    for (int i = 0; i < trial->calls.n + EXTRA; i++) {
        const Call *call = &trial->calls.call[i < trial->calls.n ? i : first_dense(&trial->calls)];
        bytes += (int64_t)sizeof(CallResult);
        if (shows(call)) bytes += MOST_SHOWN_NUMBERS * (int64_t)sizeof(Shown);
        for (int k = 0; exercise_array(e, k); k++)
            if (is_output(exercise_array(e, k)))
                bytes += call_length(e, call, k) * (int64_t)sizeof(double);
    }
    return bytes;
}

/* "line 31 of 11_attention.c uses element 64 of an array that has 64", if the program has stopped
 * there (harness.c). */
static bool explain_bounds(Trial *trial) {
    char file[64], *text = submission_read(trial->printed, 1 << 24);
    int line;
    long long index, size;
    const char *at = text ? strstr(text, "\n" BOUNDS) : NULL;
    for (const char *next = at; next; next = strstr(at + 1, "\n" BOUNDS)) at = next;
    const char *path = at ? at + 1 + strlen(BOUNDS) : "";
    const char *end = path + strcspn(path, "\n");
    for (const char *c = path; c < end; c++)
        if (*c == '/' || *c == '\\') path = c + 1;
    const bool found =
        sscanf(path, "%63[^:]:%d: %lld %lld", file, &line, &index, &size) == 4 && size > 0;
    if (found) submission_make_plain(file); /* the student may have printed the line */
    if (found)
        snprintf(trial->sentence, sizeof trial->sentence,
                 "line %d of %s uses element %lld of an array that has %lld. Which sizes may a "
                 "caller choose, and what is then the largest index?",
                 line, file, index, size);
    free(text);
    return found;
}

/* V and G of attention.c say what is outside, and exit. */
static void explain_exit(Trial *trial) {
    int line, i, j, rows, columns;
    char *text = submission_read(trial->printed, 1 << 20);
    trial->end = TRIAL_EXIT;
    const char *at = text ? strstr(text, "  line ") : NULL;
    for (; at; at = strstr(at + 1, "  line "))
        if (sscanf(at, "  line %d: [%d][%d] IS OUTSIDE of a matrix of %d x %d", &line, &i, &j,
                   &rows, &columns) == 5)
            end(trial, TRIAL_EXIT, "in line %d element [%d][%d] is outside of a matrix of %d x %d",
                line, i, j, rows, columns);
    free(text);
}

/* Why did the program stop, when it had to make another call? */
static void explain_end(Trial *trial, const Exercise *e, ProcessResult ended) {
    if (ended.end == PROCESS_NOT_STARTED)
        end(trial, TRIAL_IMPOSSIBLE, "the program cannot be started");
    else if (ended.end == PROCESS_TIMED_OUT) trial->end = TRIAL_TIMEOUT;
    else if (ended.end == PROCESS_KILLED && explain_bounds(trial)) trial->end = TRIAL_CRASH;
    else if (ended.end == PROCESS_KILLED)
        end(trial, TRIAL_CRASH, "%s", process_signal_text(ended.status));
    else if (!place_has_room(trial->place, most_results(trial, e)))
        end(trial, TRIAL_IMPOSSIBLE, "the folder of temporary files is full");
    else explain_exit(trial);
}

static ProcessResult start(const Trial *trial, const Exercise *e, const Files *files, int first,
                           int last, int seconds) {
    char folder[PATH_SIZE], from[16], to[16], path[PATH_SIZE];
    char *argv[] = {path, from, to, NULL};
    const char *name = exercise_file(e);
    place_path(trial->place, name, "", "", folder);
    snprintf(path, sizeof path, "%s", trial->program);
    snprintf(from, sizeof from, "%d", first);
    snprintf(to, sizeof to, "%d", last);
    const Program program = {.argv = argv,
                             .folder = folder,
                             .output = trial->printed,
                             .seconds = seconds,
                             .calls = files->calls,
                             .results = files->results,
                             .most = most_results(trial, e),
                             .closed = trial->place->links_statically};
    return process_run(&program);
}

/* Makes the calls from `first` to `last` - 1. Returns the first call without a result, or `last`.
 */
static int run(Trial *trial, const Exercise *e, Files *files, int first, int last, int seconds) {
    const int end = last < trial->calls.n ? last : last + EXTRA;
    const ProcessResult ended = start(trial, e, files, first, end, seconds);
    read_results(trial, e, files->results);
    const int stopped = first_undone(trial, first);
    if (stopped >= last) return last;
    if (ended.end == PROCESS_TIMED_OUT) trial->timeouts++;
    if (trial->stopped < 0) {
        trial->stopped = stopped;
        explain_end(trial, e, ended);
    }
    if (ended.end == PROCESS_STARVED) end_starved(trial); /* also after a crash: it says no more */
    return stopped;
}

/* Copies the calls, and writes them for the program; false if there is no room. */
static bool begin(Trial *trial, const Exercise *e, const Calls *calls, Files *files) {
    name_files(trial, files);
    trial->calls = calls_copy(e, calls);
    trial->shown = NULL;
    trial->num_shown = 0;
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

void trial_compute(Trial *trial, const Exercise *e, const Calls *calls, int from) {
    Files files;
    if (!begin(trial, e, calls, &files)) return;
    for (int at = from; at < calls->n && goes_on(trial);) {
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
    Files files;
    Call call;
    if (!call_copy(e, &call, &given->call[i])) return;
    for (int k = 0; call.carries && exercise_array(e, k); k++)
        if (exercise_array(e, k)->kind == STATE)
            memcpy(call.array[k], trial->calls.call[i - 1].array[k],
                   (size_t)call_length(e, &call, k) * sizeof(double));
    call.carries = false;
    name_files(trial, &files);
    FILE *file = fopen(files.calls, "wb");
    const bool written = file && write_call_bytes(e, &call, (CallHeader){0}, file);
    if (file && fclose(file) == 0 && written) start(trial, e, &files, 0, 1, MORE_SECONDS);
    call_free(&call);
}

void trial_free(Trial *trial) {
    calls_free(&trial->calls);
    free(trial->result);
    free(trial->shown);
    trial->result = NULL;
    trial->shown = NULL;
}
