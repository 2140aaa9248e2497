// The guardian: a small process between the harness and one trainer. It starts the trainer in a
// session of its own, adopts every orphan of its tree, alone reaps, and leaves nothing behind: on
// the order `kill`, or when its orders end because the harness is gone, it kills until the kernel
// says that it has no children left.
//
// It is this very tool, started as `<tool> guardian COMMAND...`. Lines of text go both ways:
//
//   descriptor 0, orders:   stop | continue | kill          end of file is `kill`
//   descriptor 1, reports:  started <pid>                   of the main process
//                           not-started <reason>
//                           exited <status>                 the main process's native wait status
//                           straggler <pid> <status>        another process of the tree, reaped
//                           stopped <count>                 the tree is frozen
//                           continued <count>
//                           gone <killed> <reaped>          no children are left; the last line
//   descriptor 2:           the output of the trainer, and nothing else
//
// A main process that ends by itself is reported at once; what it leaves behind is kept until the
// order comes. If harness and guardian are both killed by SIGKILL, the main process dies with the
// guardian, its descendants may not: only a PID namespace or a cgroup could promise that.
#pragma once

namespace ckptverify {

inline constexpr const char* kGuardianSubcommand = "guardian";

/// `argv` from the subcommand on: argv[0] is its name, the command follows. Returns the exit code.
int guardian_main(int argc, char** argv);

}  // namespace ckptverify
