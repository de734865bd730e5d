/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca cluster: numbers in what people write; nothing else may be in the text. */
#ifndef QHCA_SIM_NUMBER_H
#define QHCA_SIM_NUMBER_H

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace qhca
{

inline bool ParseWhole(const std::string &text, uint64_t *value)
{
    errno = 0;
    *value = std::strtoull(text.c_str(), nullptr, 10);
    return !text.empty() && !errno &&
           text.find_first_not_of("0123456789") == std::string::npos;
}

/* Not negative, and without an exponent. */
inline bool ParseDecimal(const std::string &text, double *value)
{
    char *end;

    *value = std::strtod(text.c_str(), &end);
    return !text.empty() && !*end &&
           text.find_first_not_of("0123456789.") == std::string::npos;
}

} // namespace qhca

#endif /* QHCA_SIM_NUMBER_H */
