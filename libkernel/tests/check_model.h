/* check_model.h: the arithmetic of the models, without the float instructions that the tiers use.
 *
 * A product of two floats is exact in float64. A sum, difference, quotient or root is rounded twice, to 53 and then to
 * 24 bits; 53 >= 2 * 24 + 2, so the second rounding gives what one rounding would have given (Figueroa 1995).
 */
#ifndef MAHE_CHECK_MODEL_H
#define MAHE_CHECK_MODEL_H

#include <math.h>

#include "check.h"

static inline float times(float a, float b)
{
    return (float)((double)a * (double)b);
}

static inline float plus(float a, float b)
{
    return (float)((double)a + (double)b);
}

static inline float minus(float a, float b)
{
    return (float)((double)a - (double)b);
}

static inline float over(float a, float b)
{
    return (float)((double)a / (double)b);
}

static inline float root(float a)
{
    return (float)sqrt((double)a);
}

/* rint for |x| <= 2^51: cutting off is exact there, and so is what it cuts off. */
static inline int64_t nearest_even(double x)
{
    const int64_t whole = (int64_t)x;
    const double rest = fabs(x - (double)whole);
    if (rest < 0.5 || (rest == 0.5 && whole % 2 == 0))
        return whole;
    return x < 0.0 ? whole - 1 : whole + 1;
}

/* Mostly ordinary, one in eight special. */
static inline float random_mixed(void)
{
    return random_bits() % 8 == 0 ? random_special() : random_uniform();
}

/* A distance of 0 to 15 elements from a guard page. */
static inline size_t random_offset(void)
{
    return random_bits() % 16;
}

/* The two formats of quantised values. */
struct format {
    const char *name;
    float q_max;
    int q4;
};

static const struct format formats[2] = {{"q8", 127.0f, 0}, {"q4", 7.0f, 1}};

static inline size_t codes_bytes(const struct format *format, size_t n)
{
    return format->q4 ? (n + 1) / 2 : n;
}

static inline int code_at(const struct format *format, const void *codes, size_t i)
{
    const uint8_t *bytes = codes;
    if (!format->q4)
        return bytes[i] < 128 ? bytes[i] : bytes[i] - 256;
    return (i % 2 == 0 ? bytes[i / 2] % 16 : bytes[i / 2] / 16) - 8;
}

#endif
