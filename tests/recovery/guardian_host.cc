// The tool without everything but its guardian, for tests that start process trees.
#include <string_view>

#include "harness/guardian.h"

int main(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != ckptverify::kGuardianSubcommand) return 64;
  return ckptverify::guardian_main(argc - 1, argv + 1);
}
