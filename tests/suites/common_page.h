/* common_page.h - the data of a page that a program wrote. */
#ifndef TESTS_COMMON_PAGE_H
#define TESTS_COMMON_PAGE_H

/* The JSON in the page, which ends behind it from now on. */
char *data_in_page(char *page);
/* The JSON in a page in the test's folder, until the next call. */
char *page_data(const char *name);

#endif
