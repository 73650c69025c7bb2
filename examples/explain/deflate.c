/* deflate.c - packs text as a file of gzip: see deflate.h.
 *
 * The format is that of RFC 1951 and 1952. The text becomes one block with the fixed code. A code
 * made for the text would save another sixth, and make this file twice as long. */
#include "deflate.h"

#include <stdint.h>

enum { WINDOW = 1 << 15, HASHES = 1 << 15, MOST_TRIES = 128 };
/* A length of 258 would have a symbol of its own. */
enum { SHORTEST = 3, LONGEST = 257, END = 256, FIRST_LENGTH = 257 };

/* The last place with each hash of three bytes, and for each of the last places the place before it
 * with the same hash; -1 if there is none. */
static int64_t latest[HASHES], before[WINDOW];

/* ---- bits ------------------------------------------------------------------------------------ */

typedef struct {
    void (*put)(void *to, unsigned byte);
    void *to;
    unsigned held; /* `bits` bits, which are not put yet */
    int bits;
} Output;

/* The n lowest bits of a value, the lowest first. */
static void write_bits(Output *o, unsigned value, int n) {
    o->held |= value << o->bits;
    for (o->bits += n; o->bits >= 8; o->bits -= 8) {
        o->put(o->to, o->held & 0xff);
        o->held >>= 8;
    }
}

/* A code has its highest bit first. */
static void write_code(Output *o, unsigned code, int n) {
    while (n-- > 0) write_bits(o, code >> n & 1, 1);
}

static void write_symbol(Output *o, unsigned symbol) {
    if (symbol < 144) write_code(o, 0x30 + symbol, 8);
    else if (symbol < 256) write_code(o, 0x190 + symbol - 144, 9);
    else if (symbol < 280) write_code(o, symbol - 256, 7);
    else write_code(o, 0xc0 + symbol - 280, 8);
}

/* ---- matches --------------------------------------------------------------------------------- */

/* A length or a distance is a symbol, which stands for 2^extra values in a row, and extra bits. */
static void write_length(Output *o, unsigned length) {
    unsigned symbol = 0, base = SHORTEST, extra = 0;
    while (length >= base + (1u << extra)) {
        base += 1u << extra;
        symbol++;
        extra = symbol < 8 ? 0 : symbol / 4 - 1;
    }
    write_symbol(o, FIRST_LENGTH + symbol);
    write_bits(o, length - base, (int)extra);
}

static void write_distance(Output *o, unsigned distance) {
    unsigned symbol = 0, base = 1, extra = 0;
    while (distance >= base + (1u << extra)) {
        base += 1u << extra;
        symbol++;
        extra = symbol < 4 ? 0 : symbol / 2 - 1;
    }
    write_code(o, symbol, 5);
    write_bits(o, distance - base, (int)extra);
}

static unsigned hash(const char *text) {
    const unsigned a = (unsigned char)text[0], b = (unsigned char)text[1],
                   c = (unsigned char)text[2];
    return (a << 10 ^ b << 5 ^ c) % HASHES;
}

/* The text at `at` can be found from now on. */
static void remember(const char *text, size_t size, size_t at) {
    if (size - at < SHORTEST) return;
    const unsigned h = hash(text + at);
    before[at % WINDOW] = latest[h];
    latest[h] = (int64_t)at;
}

/* How many characters from `at` on stand earlier, too, and how far back; 0 if less than three. */
static unsigned find(const char *text, size_t size, size_t at, unsigned *distance) {
    const size_t most = size - at < LONGEST ? size - at : LONGEST;
    unsigned longest = SHORTEST - 1;
    int64_t from = most < SHORTEST ? -1 : latest[hash(text + at)];
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        if (from < 0 || at - (size_t)from > WINDOW) break;
        unsigned n = 0;
        while (n < most && text[(size_t)from + n] == text[at + n]) n++;
        if (n > longest) {
            longest = n;
            *distance = (unsigned)(at - (size_t)from);
        }
        from = before[from % WINDOW];
    }
    return longest < SHORTEST ? 0 : longest;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void write_block(Output *o, const char *text, size_t size) {
    for (int i = 0; i < HASHES; i++) latest[i] = -1;
    write_bits(o, 1, 1); /* the last block */
    write_bits(o, 1, 2); /* with the fixed code */
    for (size_t at = 0; at < size;) {
        unsigned distance = 0;
        const unsigned length = find(text, size, at, &distance);
        if (length) {
            write_length(o, length);
            write_distance(o, distance);
        } else {
            write_symbol(o, (unsigned char)text[at]);
        }
        for (const size_t end = at + (length ? length : 1); at < end; at++)
            remember(text, size, at);
    }
    write_symbol(o, END);
    write_bits(o, 0, 7); /* up to the next byte */
}

static uint32_t crc32_of(const char *text, size_t size) {
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned char)text[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

void deflate_gzip(const char *text, size_t size, void (*put)(void *to, unsigned byte), void *to) {
    static const unsigned char head[10] = {31, 139, 8, [9] = 255}; /* no name, no time */
    const uint32_t tail[2] = {crc32_of(text, size), (uint32_t)size};
    for (size_t i = 0; i < sizeof head; i++) put(to, head[i]);
    write_block(&(Output){.put = put, .to = to}, text, size);
    for (int i = 0; i < 8; i++) put(to, tail[i / 4] >> i % 4 * 8 & 0xff);
}
