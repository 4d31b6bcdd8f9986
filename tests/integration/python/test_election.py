"""Elections by way of Python."""

import threading

import baton
from support import PATIENCE, TTL, Case


class Elections(Case):
    def setUp(self) -> None:
        super().setUp()
        self.name = self.name.replace("job", "role")

    def test_one_leads_and_who_stops_is_followed_in_a_later_term(self) -> None:
        first = self.child("lead", self.name)
        self.assertEqual(first.says(), "stands")
        token = int(first.says().split()[1])
        with self.client.elector(self.name, ttl=TTL) as elector:
            with self.assertRaises(baton.TimedOut):
                elector.lead(wait=0.05)
            first.tell("stop")
            with elector.lead(PATIENCE) as term:
                self.assertGreater(term.token, token)
                self.assertTrue(term.valid)
            self.assertEqual(first.says(), "ended")

    def test_who_is_killed_is_followed(self) -> None:
        first = self.child("lead", self.name)
        self.assertEqual(first.says(), "stands")
        self.assertTrue(first.says().startswith("leads"))
        first.kill()
        with self.client.elect(self.name, ttl=TTL, wait=PATIENCE) as term:
            self.assertTrue(term.valid)

    def test_who_is_asked_to_resign_is_told_and_its_term_ends_with_its_work(self) -> None:
        with self.client.elect(self.name, ttl=TTL, wait=PATIENCE) as term:
            other = self.child("lead", self.name)
            self.assertEqual(other.says(), "stands")
            self.wait_for_waiters(f"leader/{self.name}", 1)
            self.order("leader", "resign", self.name)
            self.assertTrue(term.lost.wait(PATIENCE))
            self.assertFalse(term.valid)
            with self.assertRaises(baton.Lost):
                term.check()
        self.assertTrue(other.says().startswith("leads"))

    def test_work_is_called_whenever_this_replica_leads(self) -> None:
        tokens = []

        class Enough(Exception):
            pass

        def work(term: baton.Term) -> None:
            tokens.append(term.token)
            if len(tokens) == 3:
                raise Enough

        with self.assertRaises(Enough):
            self.client.elect(self.name, work, ttl=TTL, cooldown=0.01)
        self.assertEqual(tokens, sorted(set(tokens)))
        self.assertEqual(len(tokens), 3)

    def test_a_term_is_fenced_as_a_lease_is(self) -> None:
        with self.client.elect(self.name, wait=PATIENCE) as term, self.data() as connection:
            self.write(connection, term, self.name)
        self.assertEqual(self.written(self.name), 1)

    def test_closing_ends_the_term_and_the_wait_of_others(self) -> None:
        elector = self.client.elector(self.name, ttl=TTL, grace=0.1)
        term = elector.lead(PATIENCE)
        second = self.client.elector(self.name, ttl=TTL)
        waited = []

        def wait() -> None:
            try:
                second.lead()
            except baton.Error as error:
                waited.append(error.code)

        thread = threading.Thread(target=wait)
        thread.start()
        closing = threading.Thread(target=elector.close)
        closing.start()
        self.assertTrue(term.lost.wait(PATIENCE))
        second.close()
        thread.join()
        self.assertIn(waited[0], ("cancelled", "bad_request"))
        with self.assertRaises(baton.Lost):
            term.release()
        closing.join()
        with self.client.hold(f"leader/{self.name}", wait=PATIENCE):
            pass

    def test_a_name_that_cannot_be_is_refused(self) -> None:
        with self.assertRaises(baton.BadRequest):
            self.client.elector("")
