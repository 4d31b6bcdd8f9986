// The text of the manual page of baton that is not in its help.

#include "cli/options_build.h"

namespace baton::cli {

void add_manual(Program& program) {
  program.manual({"NAME", {{"", "locks, leader election and jobs for the replicas of a service"}}});
  program.manual(
      {"ENVIRONMENT",
       {{"BATON_STORE",
         "Where the locks are, if --store is not given. Set but empty it is an error: going on "
         "would mean locking in another store than the other machines do."},
        {"BATON_BROKER",
         "The broker of topology, queue, broker and relay, if --broker is not "
         "given."},
        {"BATON_FENCE",
         "The lease that 'fence check' asks about without NAME; 'run' and 'elect' "
         "set it for their command."},
        {"PGPASSFILE, PGSSLMODE, ...",
         "What libpq reads, for stores and databases on "
         "PostgreSQL."},
        {"KUBECONFIG", "The cluster of a store k8s://, outside of a pod."},
        {"XDG_CONFIG_HOME, XDG_STATE_HOME", "See FILES; default ~/.config and ~/.local/state."},
        {"NO_COLOR", "No colours on a terminal, if it is not empty."}}});
  program.manual(
      {"FILES",
       {{"baton.yaml, $XDG_CONFIG_HOME/baton/baton.yaml",
         "The settings store, region and owner, in YAML. The one in the current directory is read "
         "only if neither --store nor BATON_STORE is given, and only if it belongs to the user or "
         "root and nobody else may write it."},
        {"$XDG_STATE_HOME/baton/baton.db",
         "The store if none is given anywhere: for the processes of one user on one machine."}}});
  program.manual({"EXIT STATUS",
                  {{"0", "Done."},
                   {"1", "An error: the store is not there, the policy denies it, ..."},
                   {"2", "The command line, a name, a URL or a file is wrong."},
                   {"75", "The lock is busy, or not free in time; nobody leads."},
                   {"76", "The lock was lost while the command ran."},
                   {"77", "'fence check': a write with that token would be refused."},
                   {"126, 127", "The command cannot be executed, or not be found."},
                   {"128 + N", "Signal N ended the command, or the wait."}}});
}

}  // namespace baton::cli
