#include "find.h"
int find_inputs(void) { return 0; }
