/* filter.c - a list of the system calls that a student's program may make: see filter.h. Linux runs
 * the list as a small program before each system call (seccomp). A call that is not in the list
 * fails as on a system that does not know it, so the C library takes another way if there is one.
 */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): syscall and O_PATH want it */
#include "filter.h"

#if defined __linux__ && defined __LP64__ && __has_include(<linux/seccomp.h>) &&                   \
    (defined __x86_64__ || defined __aarch64__ || defined __riscv)
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <errno.h>

#ifdef __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define MACHINE AUDIT_ARCH_AARCH64
#else
#define MACHINE AUDIT_ARCH_RISCV64
#endif

static const int allowed[] = {
    /* files that are open, and what there is to read */
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_ppoll,
    SYS_pselect6,
    /* memory */
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_madvise,
    SYS_msync,
    SYS_mincore,
    /* its own begin and end, and its own signals */
    SYS_execve,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_setitimer,
    /* threads */
    SYS_futex,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_gettid,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    /* time, and what it may know */
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_times,
    SYS_getrusage,
    SYS_getpid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrandom,
    SYS_getcpu,
    SYS_getrlimit,
#ifdef SYS_statx
    SYS_statx,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_membarrier
    SYS_membarrier,
#endif
#ifdef __x86_64__
    SYS_dup2,
    SYS_pipe,
    SYS_poll,
    SYS_select,
    SYS_time,
    SYS_alarm,
    SYS_arch_prctl,
#elif defined __riscv
    259, 258, /* riscv_flush_icache, riscv_hwprobe */
#endif
};

/* Calls of which one argument decides. */
typedef struct {
    int call, argument;
    unsigned mask, value; /* it may be made if (argument & mask) == value */
} Condition;

enum { WRITES = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND };

/* ---- the program ----------------------------------------------------------------------------- */

enum { MOST_STEPS = 400 };
typedef struct {
    struct sock_filter step[MOST_STEPS];
    unsigned short n;
} Steps;

static void add(Steps *steps, struct sock_filter step) { steps->step[steps->n++] = step; }
static void load(Steps *steps, size_t at) {
    add(steps, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)at));
}
static void finish(Steps *steps, unsigned how) {
    add(steps, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, how));
}
/* Unless the number is this one, skip so many steps. */
static void unless(Steps *steps, unsigned number, unsigned char skipped) {
    add(steps, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, skipped));
}

/* Arguments have 8 bytes, and these machines have the lower half first. */
static void allow_if(Steps *steps, const Condition *c) {
    unless(steps, (unsigned)c->call, 5);
    load(steps, offsetof(struct seccomp_data, args) + 8 * (size_t)c->argument);
    add(steps, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c->mask));
    unless(steps, c->value, 1);
    finish(steps, SECCOMP_RET_ALLOW);
    load(steps, offsetof(struct seccomp_data, nr));
}

static void fail_with(Steps *steps, int call, int error) {
    unless(steps, (unsigned)call, 1);
    finish(steps, SECCOMP_RET_ERRNO | (unsigned)error);
}

/* What ld.so needs. */
static void list_files(Steps *steps) {
    static const int call[] = {
        SYS_faccessat, SYS_readlinkat, SYS_getcwd,
#ifdef __x86_64__
        SYS_access,    SYS_readlink,
#endif
    };
    const Condition list[] = {
        {SYS_openat, 2, WRITES, O_RDONLY},
#ifdef __x86_64__
        {SYS_open, 1, WRITES, O_RDONLY},
#endif
    };
    for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
        unless(steps, (unsigned)call[i], 1);
        finish(steps, SECCOMP_RET_ALLOW);
    }
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) allow_if(steps, &list[i]);
}

static void list_conditions(Steps *steps) {
    const unsigned self = (unsigned)getpid(), all = ~0u;
    const Condition list[] = {
        {SYS_clone, 0, CLONE_THREAD, CLONE_THREAD}, /* a thread, and no process */
        {SYS_kill, 0, all, self},
        {SYS_tkill, 0, all, self},
        {SYS_tgkill, 0, all, self},
        {SYS_prlimit64, 0, all, 0}, /* its own */
        {SYS_ioctl, 1, all, TCGETS},
        {SYS_ioctl, 1, all, TIOCGWINSZ},
        {SYS_fcntl, 1, all, F_DUPFD},
        {SYS_fcntl, 1, all, F_DUPFD_CLOEXEC},
        {SYS_fcntl, 1, all, F_GETFD},
        {SYS_fcntl, 1, all, F_SETFD},
        {SYS_fcntl, 1, all, F_GETFL},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) allow_if(steps, &list[i]);
}

void filter_install(bool closed) {
    Steps steps = {.n = 0};
    load(&steps, offsetof(struct seccomp_data, arch));
    add(&steps, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0));
    finish(&steps, SECCOMP_RET_KILL);
    load(&steps, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        unless(&steps, (unsigned)allowed[i], 1);
        finish(&steps, SECCOMP_RET_ALLOW);
    }
    if (!closed) list_files(&steps);
    list_conditions(&steps);
    fail_with(&steps, SYS_openat, EACCES);
    fail_with(&steps, SYS_ioctl, ENOTTY);
    finish(&steps, SECCOMP_RET_ERRNO | ENOSYS);
    const struct sock_fprog program = {steps.n, steps.step};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

#else
void filter_install(bool closed) { (void)closed; }
#endif

#if defined __linux__ && __has_include(<linux/landlock.h>)
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    READS = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    ALL = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1 /* of Landlock's first version */
};

static bool allow(int rules, const char *path, uint64_t access) {
    struct landlock_path_beneath_attr rule = {.allowed_access = access};
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0) return false;
    const bool ok =
        syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    close(rule.parent_fd);
    return ok;
}

bool filter_confine(const char *const *folders) {
    static const char *const system[] = {"/usr", "/bin", "/lib", "/lib64", "/opt", "/nix"};
    const struct landlock_ruleset_attr all = {.handled_access_fs = ALL};
    const int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (rules < 0) return false;
    for (size_t i = 0; i < sizeof system / sizeof *system; i++) allow(rules, system[i], READS);
    bool ok = allow(rules, *folders, ALL);
    while (*++folders) allow(rules, *folders, READS); /* one that is not there is none to open */
    ok = ok && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return ok;
}
#else
bool filter_confine(const char *const *folders) {
    (void)folders;
    return false;
}
#endif
