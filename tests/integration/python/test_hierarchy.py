"""Names below others, as a policy declares them. One store is enough, for applying a policy waits."""

import json
import subprocess

import baton
from support import PROGRAM, Case


class Hierarchy(Case):
    def test_the_ancestors_of_a_name_are_shown_too(self) -> None:
        policy = self.environment.path("policy.yaml")
        with open(policy, "w", encoding="utf-8") as file:
            file.write("subjects:\n  book: {}\n  leaf:\n    parent: book\n")
        subprocess.run([PROGRAM, "policy", "apply", policy, "--store", self.environment.store],
                       check=True, capture_output=True)
        with baton.open(self.environment.store) as client, client.hold("leaf/1/2") as lease:
            self.assertEqual([(token.key, token.mode) for token in lease.tokens],
                             [("DEFAULT:leaf:1:2", "X"), ("DEFAULT:book:1", "IX")])
            self.assertEqual([entry["name"] for entry in json.loads(lease.fence_text)],
                             ["DEFAULT:leaf:1:2", "DEFAULT:book:1"])
            with self.data() as connection:
                self.write(connection, lease, "leaf")
