/* process.c - programs with a time limit, on POSIX: see process.h. */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier): setgroups and syscall want it */
#include "process.h"

#include "filter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

static volatile sig_atomic_t interrupted;
static void interrupt(int number) { interrupted = number; }
bool process_interrupted(void) { return interrupted; }

/* The programs' user, where the marker is root. */
static struct {
    bool is_another;
    char name[64];
    uid_t uid;
    gid_t gid;
} theirs;

const char *process_user(void) { return theirs.is_another ? theirs.name : NULL; }

static bool find_user(const char *user) {
    const struct passwd *entry = getpwnam(user ? user : "nobody");
    if (!entry && user) return false;
    if (geteuid() != 0) return !user || (entry && entry->pw_uid == geteuid());
    theirs.uid = entry ? entry->pw_uid : 65534;
    theirs.gid = entry ? entry->pw_gid : 65534;
    theirs.is_another = theirs.uid != 0;
    snprintf(theirs.name, sizeof theirs.name, "%s", user ? user : "nobody");
    return true;
}

/* ---- in the new process ---------------------------------------------------------------------- */

enum { MOST_OUTPUT = 16 << 20, MOST_MEMORY = 2000000000, MOST_PROCESSES = 256, MOST_FILES = 64 };
enum { IN, OUT, CALLS, RESULTS, ERROR, FILES }; /* what a program gets open */

static void limit(int what, rlim_t most) {
    const struct rlimit both = {most,
                                what == RLIMIT_CPU ? most + 1 : most}; /* a signal, then the end */
    setrlimit(what, &both);
}

/* Where the system allows it: a right answer may have a table of n x n numbers on its stack. */
static void enlarge_stack(void) {
    enum { STACK = 32 << 20 };
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0) return;
    stack.rlim_cur = stack.rlim_max < STACK ? stack.rlim_max : STACK;
    setrlimit(RLIMIT_STACK, &stack);
}

/* SIGXFSZ is ignored (flags_parse), so what is printed beyond the limit is lost, and the program
 * goes on. */
static void set_limits(const Program *p) {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_FSIZE, (rlim_t)(MOST_OUTPUT + p->most));
    limit(RLIMIT_AS, MOST_MEMORY);
    limit(RLIMIT_CPU, (rlim_t)ceil(p->seconds)); /* even if the marker itself is killed */
    if (p->calls) limit(RLIMIT_NOFILE, MOST_FILES);
    if (p->calls) enlarge_stack();
#ifdef RLIMIT_NPROC
    if (theirs.is_another && !p->own) limit(RLIMIT_NPROC, MOST_PROCESSES);
#endif
}

static void close_from(int first) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0u, 0) == 0) return;
#endif
    struct rlimit files;
    const bool known = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 1 << 16;
    for (int file = first; file < (known ? (int)files.rlim_cur : 1 << 16); file++) close(file);
}

/* Of all files of the marker only these stay open: 0, 1 and 2; 3 and 4 for a student's program;
 * and one that exec closes. */
static bool arrange(const int *file, bool with_calls) {
    enum { OUT_OF_THE_WAY = 64 };
    int from[FILES];
    const int last = with_calls ? 5 : 3;
    for (int i = 0; i < FILES; i++)
        from[i] = file[i] < 0 ? -1 : fcntl(file[i], F_DUPFD, OUT_OF_THE_WAY);
    if (dup2(from[IN], 0) < 0 || dup2(from[OUT], 1) < 0 || dup2(from[OUT], 2) < 0) return false;
    if (with_calls && (dup2(from[CALLS], 3) < 0 || dup2(from[RESULTS], 4) < 0)) return false;
    if (dup2(from[ERROR], last) < 0 || fcntl(last, F_SETFD, FD_CLOEXEC) < 0) return false;
    close_from(last + 1);
    return true;
}

static bool become_user(const Program *p) {
    if (!theirs.is_another || p->own) return true;
    return setgroups(0, NULL) == 0 && setgid(theirs.gid) == 0 && setuid(theirs.uid) == 0;
}

/* A student's program: by its name in its folder, since its user may not see the folders above. */
static void start_student(const Program *p) {
    static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", language[] = "LC_ALL=C";
    char *const environment[] = {path, language, NULL};
    const char *slash = strrchr(p->argv[0], '/');
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* it ends with the marker */
#endif
    filter_install(p->closed);
#ifdef __linux__
    syscall(SYS_execve, slash ? slash + 1 : p->argv[0], p->argv, environment); /* not gcov's */
#else
    execve(slash ? slash + 1 : p->argv[0], p->argv, environment);
#endif
}

/* Its temporary files lie in its own folder: it can write nowhere else. */
static void start_compiler(const Program *p) {
    if (p->confined && (setenv("TMPDIR", ".", 1) != 0 || !filter_confine(p->confined))) return;
    execvp(p->argv[0], p->argv);
}

/* A group of its own, so that its children are stopped with it. */
static void become(const Program *p, const int *file) {
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    const int error_at = p->calls ? 5 : 3;
    if (!arrange(file, p->calls)) _exit(1);
    if (chdir(p->folder) == 0 && become_user(p)) {
        set_limits(p);
        if (p->calls) start_student(p);
        else start_compiler(p);
    }
    const char failed = 1;
    (void)!write(error_at, &failed, 1);
    _exit(1);
}

/* ---- what is left of a program -----------------------------------------------------------------
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { MOST_CHILDREN = 64 };
static pid_t children[MOST_CHILDREN]; /* of the marker; 0: a free place */

static void note_child(pid_t before, pid_t after) {
    for (int i = 0; i < MOST_CHILDREN; i++)
        if (children[i] == before) {
            children[i] = after;
            return;
        }
}

#ifdef __linux__
static bool is_noted(pid_t pid) {
    for (int i = 0; i < MOST_CHILDREN; i++)
        if (children[i] == pid) return true;
    return false;
}

static void note_new(pid_t pid) { note_child(0, pid); }
static void end_stray(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Calls what() for each child of a thread that is not noted; returns how many there are. */
static int for_strays_of(const char *thread, void (*what)(pid_t)) {
    char path[300];
    int pid, strays = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/children", thread);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    while (fscanf(file, "%d", &pid) == 1)
        if (!is_noted(pid)) {
            what(pid);
            strays++;
        }
    fclose(file);
    return strays;
}

static int for_strays(void (*what)(pid_t)) {
    DIR *threads = opendir("/proc/self/task");
    int strays = 0;
    if (!threads) return 0;
    for (struct dirent *thread = readdir(threads); thread; thread = readdir(threads))
        strays += for_strays_of(thread->d_name, what);
    closedir(threads);
    return strays;
}

/* A process that has left its group becomes a child of the marker when its parent ends. */
static void adopt_strays(void) {
    for_strays(note_new); /* of a shell that has become the marker by exec */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}
static void end_strays(void) {
    enum { TRIES = 100 };
    pthread_mutex_lock(&lock);
    for (int i = 0; i < TRIES && for_strays(end_stray) > 0; i++) continue;
    pthread_mutex_unlock(&lock);
}
#else
static void adopt_strays(void) {}
static void end_strays(void) {}
#endif

/* ---- beginning ---------------------------------------------------------------------------------
 */

bool process_prepare(const char *user, char *sentence, size_t size) {
    setenv("LC_ALL", "C", 1);
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    adopt_strays();
#ifdef __linux__
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* nobody reads the right results in its memory */
#endif
    if (find_user(user)) return true;
    snprintf(sentence, size, "--user %s: %s", user,
             getpwnam(user) ? "only root can start programs as another user"
                            : "there is no such user");
    return false;
}

/* ---- one program ----------------------------------------------------------------------------- */

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Does the process wait, of its own will, for something that has not come? Then it is neither on a
 * processor nor in the queue for one. Where nothing says so: false. "PID (name) S ..." */
static bool sleeps(pid_t pid) {
#ifdef __linux__
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file) text[fread(text, 1, sizeof text - 1, file)] = '\0';
    if (file) fclose(file);
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
#else
    (void)pid;
    return false;
#endif
}

/* Waits with longer and longer pauses, up to 5 ms, until the program ends or is no longer waited
 * for; the result is then why. The system ends it when it has computed for too long (set_limits),
 * so here counts only what does not: sleep of its own, and at last the time of the clock. A pause
 * that took long, since the machine is busy or was stopped, counts as a short one. */
static ProcessEnd wait_for(pid_t child, int *status, const Program *p) {
    const double end = now() + PROCESS_PATIENCE * p->seconds, longest = 0.1;
    double slept = 0;
    long pause = 100000;
    for (;;) {
        const pid_t ended = waitpid(child, status, WNOHANG);
        if (ended == child) return PROCESS_ENDED;
        if ((ended < 0 && errno != EINTR) || interrupted) return PROCESS_STARVED;
        const double before = now();
        if (before > end) return PROCESS_STARVED;
        if (slept > PROCESS_SLEEP * p->seconds) return PROCESS_TIMED_OUT;
        nanosleep(&(struct timespec){0, pause}, NULL);
        const double paused = now() - before;
        if (p->calls && sleeps(child)) slept += paused < longest ? paused : longest;
        if (pause < 5000000) pause += pause / 4;
    }
}

static bool open_all(const Program *p, int *file, int *error) {
    for (int i = 0; i < FILES; i++) file[i] = -1;
    *error = -1;
    file[IN] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    file[OUT] = open(p->output, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (p->calls) {
        file[CALLS] = open(p->calls, O_RDONLY | O_CLOEXEC);
        file[RESULTS] =
            open(p->results, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file[CALLS] < 0 || file[RESULTS] < 0) return false;
    }
    int ends[2];
    if (file[IN] < 0 || file[OUT] < 0 || pipe(ends) != 0) return false;
    *error = ends[0];
    file[ERROR] = ends[1];
    return fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 && fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
}

static void close_all(const int *file) {
    for (int i = 0; i < FILES; i++)
        if (file[i] >= 0) close(file[i]);
}

/* The new process; -1 if it could not begin. */
static pid_t start(const Program *p) {
    int file[FILES], error;
    char failed;
    pid_t child = -1;
    if (open_all(p, file, &error)) {
        pthread_mutex_lock(&lock);
        child = fork();
        if (child == 0) become(p, file);
        if (child > 0) note_child(0, child);
        pthread_mutex_unlock(&lock);
    }
    close_all(file);
    if (child > 0 && read(error, &failed, 1) == 1) {
        waitpid(child, NULL, 0);
        pthread_mutex_lock(&lock);
        note_child(child, 0);
        pthread_mutex_unlock(&lock);
        child = -1;
    }
    if (error >= 0) close(error);
    return child;
}

ProcessResult process_run(const Program *program) {
    int status = 0;
    const pid_t child = start(program);
    if (child < 0) return (ProcessResult){PROCESS_NOT_STARTED, 0};
    const ProcessEnd end = wait_for(child, &status, program);
    kill(-child, SIGKILL); /* what is left of its group */
    if (end != PROCESS_ENDED) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    pthread_mutex_lock(&lock);
    note_child(child, 0);
    pthread_mutex_unlock(&lock);
    if (program->calls) end_strays();
    if (end != PROCESS_ENDED) return (ProcessResult){end, 0};
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        return (ProcessResult){PROCESS_TIMED_OUT, 0};
    if (WIFSIGNALED(status)) return (ProcessResult){PROCESS_KILLED, WTERMSIG(status)};
    return (ProcessResult){PROCESS_ENDED, WEXITSTATUS(status)};
}

const char *process_signal_text(int number) {
    switch (number) {
    case SIGSEGV:
    case SIGBUS:
        return "it reads or writes memory that is not there: an index that is too large, a pointer "
               "that is not set, or an array too large for the stack";
    case SIGFPE: return "a whole number is divided by 0";
    case SIGABRT: return "it stops itself: abort, a failed assert, or a heap that was overwritten";
    case SIGILL:
    case SIGTRAP: return "an index is outside of its array";
    case SIGKILL: return "the system has stopped it: too much memory, perhaps";
    default: return strsignal(number);
    }
}

/* ---- folders --------------------------------------------------------------------------------- */

bool process_make_folder(char *path, size_t size) {
    const char *parent = getenv("TMPDIR");
    snprintf(path, size, "%s/exercises-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(path)) return false;
    setenv("TMPDIR", ".", 1); /* the compiler's: the folder where it runs */
    return chmod(path, 0711) == 0;
}

bool process_make_folder_in(const char *parent, const char *name, bool is_theirs, char *path,
                            size_t size) {
    snprintf(path, size, "%s/%s", parent, name);
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return false;
    if (!is_theirs) return chmod(path, 0755) == 0;
    return !theirs.is_another || chown(path, theirs.uid, theirs.gid) == 0;
}

void process_keep(const char *folder, const char *program) {
    if (!theirs.is_another) return;
    if (lchown(folder, 0, 0) == 0) chmod(folder, 0755);
    if (lchown(program, 0, 0) == 0) chmod(program, 0755);
}

int process_cores(void) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}
