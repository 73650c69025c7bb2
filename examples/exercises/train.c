#include "train.h"
int train_beside(const Place *place) { return place ? 0 : 1; }
