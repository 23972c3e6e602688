/* bits.h: floats as bits and back, for the reference. */
#ifndef MAHE_BITS_H
#define MAHE_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline uint32_t magnitude_of(float value)
{
    return bits_of(value) & 0x7fffffffu;
}

#endif
