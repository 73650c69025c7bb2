/* process_windows.c - programs with a time limit, on Windows: see process.h. */
#include "process.h"

#include <windows.h>

#include <direct.h>
#include <errno.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile LONG interrupted;
static BOOL WINAPI interrupt(DWORD event) {
    (void)event;
    interrupted = 1;
    return TRUE;
}
bool process_interrupted(void) { return interrupted; }

bool process_prepare(const char *user, char *sentence, size_t size) {
    _putenv("LC_ALL=C");
    SetConsoleCtrlHandler(interrupt, TRUE);
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
    if (user) snprintf(sentence, size, "--user is for systems with root");
    return !user;
}
const char *process_user(void) { return NULL; }

enum { MOST_MEMORY = 2000000000, PAUSE = 5 /* milliseconds */ };

/* Windows passes one line. Between quotes a backslash counts only before a quote; paths have none.
 */
static void make_line(char *line, size_t size, const Program *p) {
    size_t at = 0;
    for (int i = 0; p->argv[i] && at < size; i++)
        at += (size_t)snprintf(line + at, size - at, "%s\"%s\"", i ? " " : "", p->argv[i]);
    if (p->calls && at < size)
        snprintf(line + at, size - at, " \"%s\" \"%s\"", p->calls, p->results);
}

/* Seconds of a processor that the process has used. */
static double computed(HANDLE process) {
    FILETIME made, ended, in_system, own;
    if (!GetProcessTimes(process, &made, &ended, &in_system, &own)) return 0;
    const double high = (double)in_system.dwHighDateTime + own.dwHighDateTime;
    return 1e-7 * (4294967296.0 * high + in_system.dwLowDateTime + own.dwLowDateTime);
}

/* Until it ends, has computed for too long, has had too long by the clock, or Ctrl-C is pressed. */
static ProcessEnd wait_for(HANDLE process, double seconds) {
    const ULONGLONG end = GetTickCount64() + (ULONGLONG)(1000 * PROCESS_PATIENCE * seconds);
    while (WaitForSingleObject(process, PAUSE) != WAIT_OBJECT_0) {
        if (computed(process) > seconds) return PROCESS_TIMED_OUT;
        if (interrupted || GetTickCount64() > end) return PROCESS_STARVED;
    }
    return PROCESS_ENDED;
}

/* A job: the processes of this one are stopped with it, and its memory has a limit. */
static HANDLE make_job(void) {
    const HANDLE job = CreateJobObjectA(NULL, NULL);
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {.BasicLimitInformation.LimitFlags =
                                                       JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
                                                       JOB_OBJECT_LIMIT_PROCESS_MEMORY,
                                                   .ProcessMemoryLimit = MOST_MEMORY};
    SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    return job;
}

ProcessResult process_run(const Program *program) {
    SECURITY_ATTRIBUTES inherit = {sizeof inherit, NULL, TRUE};
    STARTUPINFOA start = {.cb = sizeof start, .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION process;
    char line[16384];
    DWORD status = 0;
    make_line(line, sizeof line, program);
    start.hStdInput =
        CreateFileA("NUL", GENERIC_READ, FILE_SHARE_READ, &inherit, OPEN_EXISTING, 0, NULL);
    start.hStdOutput = CreateFileA(program->output, GENERIC_WRITE, FILE_SHARE_READ, &inherit,
                                   CREATE_ALWAYS, 0, NULL);
    start.hStdError = start.hStdOutput;
    const BOOL started =
        CreateProcessA(NULL, line, NULL, NULL, TRUE, CREATE_NO_WINDOW | CREATE_SUSPENDED, NULL,
                       NULL, &start, &process);
    CloseHandle(start.hStdInput);
    CloseHandle(start.hStdOutput);
    if (!started) return (ProcessResult){PROCESS_NOT_STARTED, 0};
    const HANDLE job = make_job();
    AssignProcessToJobObject(job, process.hProcess);
    ResumeThread(process.hThread);
    const ProcessEnd end = wait_for(process.hProcess, program->seconds);
    if (end != PROCESS_ENDED) {
        TerminateProcess(process.hProcess, 1);
        WaitForSingleObject(process.hProcess, INFINITE);
    }
    GetExitCodeProcess(process.hProcess, &status);
    CloseHandle(process.hThread);
    CloseHandle(process.hProcess);
    CloseHandle(job); /* what is left of it */
    if (end != PROCESS_ENDED) return (ProcessResult){end, 0};
    /* An exception is 0xc0000005 and the like. */
    return (ProcessResult){status >= 0xc0000000 ? PROCESS_KILLED : PROCESS_ENDED, (int)status};
}

const char *process_signal_text(int number) {
    switch ((unsigned)number) {
    case 0xc0000005:
        return "it reads or writes memory that is not there: an index that is too large, or a pointer that is not set";
    case 0xc00000fd:
        return "an array is too large for the stack, or a function calls itself for ever";
    case 0xc0000094: return "a whole number is divided by 0";
    default: return "an exception";
    }
}

bool process_make_folder(char *path, size_t size) {
    char parent[MAX_PATH];
    if (!GetTempPathA(sizeof parent, parent)) return false;
    snprintf(path, size, "%sexercises-%d", parent, _getpid());
    return _mkdir(path) == 0 || errno == EEXIST;
}

bool process_make_folder_in(const char *parent, const char *name, bool theirs, char *path,
                            size_t size) {
    (void)theirs;
    snprintf(path, size, "%s/%s", parent, name);
    return _mkdir(path) == 0 || errno == EEXIST;
}

void process_keep(const char *folder, const char *program) {
    (void)folder;
    (void)program;
}

int process_cores(void) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return (int)info.dwNumberOfProcessors;
}
