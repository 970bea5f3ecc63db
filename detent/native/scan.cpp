// Placeholder until the table scans arrive.
#include "parallel.hpp"
