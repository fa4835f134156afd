/* What messages hold. */
#include "rdspeer.h"

enum { NUMBER = 8 };

static unsigned char pattern(size_t i, uint64_t number) { return number * 7 + i * 31 + (i >> 8); }

void fill(unsigned char *p, size_t size, uint64_t number)
{
    for (size_t i = 0; i < size; i++)
        p[i] = pattern(i, number);
    for (int i = 0; size >= NUMBER && i < NUMBER; i++)
        p[i] = number >> (56 - 8 * i);
}

uint64_t number_of(const unsigned char *p, size_t size, uint64_t expected)
{
    uint64_t number = 0;
    if (size < NUMBER)
        return expected;
    for (int i = 0; i < NUMBER; i++)
        number = number << 8 | p[i];
    return number;
}

bool holds(const unsigned char *p, size_t size, uint64_t number)
{
    for (size_t i = size < NUMBER ? 0 : NUMBER; i < size; i++)
        if (p[i] != pattern(i, number))
            return false;
    return number_of(p, size, number) == number;
}
