/* common_page.h - the data of a page that a program wrote. */
#ifndef TESTS_COMMON_PAGE_H
#define TESTS_COMMON_PAGE_H

/* The JSON in the page, unpacked, which may be written over. It stays until the next call. */
char *data_in_page(const char *page);

#endif
