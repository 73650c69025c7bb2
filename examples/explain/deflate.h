/* deflate.h - packs text as a file of gzip, which page/unpack.js and any gunzip unpack. */
#ifndef TAPEHEAD_EXAMPLES_DEFLATE_H
#define TAPEHEAD_EXAMPLES_DEFLATE_H

#include <stddef.h>

/* Calls put(to, byte) for each byte of the file. It allocates nothing, and a second call puts the
 * same bytes. */
void deflate_gzip(const char *text, size_t size, void (*put)(void *to, unsigned byte), void *to);

#endif
