/* common_page.c - the data of a page: see common_page.h. */
#include "common_page.h"
#include "common_program.h"

#include <check.h>
#include <string.h>

char *data_in_page(char *page) {
    static const char begin[] = "<script id=\"data\" type=\"application/json\">\n";
    char *data = strstr(page, begin);
    ck_assert_msg(data != NULL, "the page has no data");
    data += strlen(begin);
    char *end = strstr(data, "</script>");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    return data;
}

char *page_data(const char *name) {
    static char page[1 << 22];
    slurp(path(name), page, sizeof page);
    return data_in_page(page);
}
