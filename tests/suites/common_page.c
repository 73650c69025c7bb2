/* common_page.c - unpacks the data of a page: see common_page.h. deflate.c writes one block with
 * the fixed code, so this is all that an inflate must know. */
#include "common_page.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static unsigned char file[1 << 21]; /* of gzip */
static char json[1 << 21];
static size_t bit; /* the next one of the file */

/* ---- base 91 --------------------------------------------------------------------------------- */

static unsigned digit(char c) { return (unsigned)((c == '!' ? '<' : c) - '#'); }

/* Returns the size. */
static size_t read_file(const char *text) {
    char *at;
    const size_t size = strtoul(text, &at, 10);
    ck_assert(*at == ' ' && size > 18 && size < sizeof file);
    unsigned held = 0, bits = 0;
    size_t n = 0;
    for (at++; n < size; at += 2) {
        ck_assert(*at != '<' && at[1] != '<');
        held = held << 13 | (digit(at[0]) * 91 + digit(at[1]));
        for (bits += 13; bits >= 8; bits -= 8)
            if (n < size) file[n++] = (unsigned char)(held >> (bits - 8));
    }
    return size;
}

/* ---- deflate --------------------------------------------------------------------------------- */

static unsigned take(int n) {
    unsigned value = 0;
    for (int i = 0; i < n; i++, bit++) value |= (file[bit / 8] >> bit % 8 & 1u) << i;
    return value;
}

static unsigned take_code(unsigned code, int n) {
    while (n-- > 0) code = code << 1 | take(1);
    return code;
}

static unsigned take_symbol(void) {
    const unsigned seven = take_code(0, 7);
    if (seven < 0x18) return 256 + seven;
    const unsigned eight = take_code(seven, 1);
    if (eight < 0xc0) return eight - 0x30;
    if (eight < 0xc8) return eight - 0xc0 + 280;
    return take_code(eight, 1) - 0x190 + 144;
}

/* group: how many symbols have the same number of extra bits; the first 2 * group have none. */
static unsigned take_value(unsigned symbol, unsigned base, unsigned group) {
    unsigned extra = 0;
    for (unsigned s = 0; s <= symbol; s++) {
        extra = s < 2 * group ? 0 : s / group - 1;
        if (s < symbol) base += 1u << extra;
    }
    return base + take((int)extra);
}

static size_t inflate(void) {
    size_t n = 0;
    bit = (size_t)8 * 10; /* behind the head */
    ck_assert_uint_eq(take(1), 1);
    ck_assert_uint_eq(take(2), 1);
    for (unsigned s = take_symbol(); s != 256; s = take_symbol()) {
        if (s < 256) json[n++] = (char)s;
        else {
            const unsigned length = take_value(s - 257, 3, 4);
            const unsigned back = take_value(take_code(0, 5), 1, 2);
            ck_assert(back <= n && n + length < sizeof json);
            for (const size_t end = n + length; n < end; n++) json[n] = json[n - back];
        }
        ck_assert_uint_lt(n, sizeof json - 1);
    }
    json[n] = '\0';
    return n;
}

char *data_in_page(const char *page) {
    static const char begin[] = "<script id=\"packed-data\" type=\"text/plain\">";
    const char *data = strstr(page, begin);
    ck_assert_msg(data != NULL, "the page has no data");
    const size_t size = read_file(data + strlen(begin));
    const size_t length = inflate();
    bit = 8 * (size - 4);
    ck_assert_uint_eq(take(32), length);
    return json;
}
