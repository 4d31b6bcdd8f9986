#include <baton/name.h>

int main() { return baton::parse_path("report/2026-11") ? 0 : 1; }
