#include <baton/policy.h>

int main() { return baton::parse_policy("subjects: {report: {}}\n") ? 0 : 1; }
