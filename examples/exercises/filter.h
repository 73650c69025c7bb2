/* filter.h - what a student's program may ask of the system. */
#ifndef TAPEHEAD_EXERCISES_FILTER_H
#define TAPEHEAD_EXERCISES_FILTER_H

/* From now on this process may compute, use memory and threads, read files, and write to files that
 * are open. It cannot write another file, start a process, send a signal to another one, read
 * another one's memory, or use a network: also after exec. On Linux alone, on x86-64, AArch64 and
 * RISC-V; elsewhere nothing happens. */
void filter_install(void);

#endif
