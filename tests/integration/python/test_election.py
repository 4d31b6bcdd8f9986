"""Elections by way of Python."""

import threading
from typing import Any

import baton
from support import PATIENCE, TTL, Case, poll_until


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

    def test_the_candidate_of_the_highest_priority_is_next(self) -> None:
        lock = f"leader/{self.name}"
        with self.candidate("first", priority=3) as first, first.lead(PATIENCE) as term:
            with self.candidate("low", priority=1) as low:
                self.wait_for_waiters(lock, 1)
                with self.candidate("high", priority=5) as high:
                    self.wait_for_waiters(lock, 2)
                    self.wait_for_priorities(3)
                    term.release()
                    with high.lead(PATIENCE) as next_term:
                        self.assertGreater(next_term.token, term.token)
                        with self.assertRaises(baton.TimedOut):
                            low.lead(0)

    def test_a_candidate_that_preempts_takes_over_when_the_work_has_ended(self) -> None:
        with self.candidate("low", priority=-1) as low:
            term = low.lead(PATIENCE)
            with self.candidate("high", priority=5, preempt=True) as high:
                with term:
                    self.assertTrue(term.lost.wait(PATIENCE))
                    with self.assertRaises(baton.TimedOut):
                        high.lead(0)
                with high.lead(PATIENCE) as next_term:
                    self.assertGreater(next_term.token, term.token)

    def test_a_candidate_that_never_leads_leaves_the_election_to_others(self) -> None:
        with self.candidate("observer", never_lead=True) as observer:
            with self.candidate("other") as other, other.lead(PATIENCE):
                pass
            with self.assertRaises(baton.TimedOut):
                observer.lead(0)

    def test_a_priority_that_cannot_be_is_refused(self) -> None:
        for wrong in (2**31, -(2**31) - 1, 2**70, 1.5, "high"):
            with self.assertRaises(baton.BadRequest, msg=repr(wrong)):
                self.client.elector(self.name, priority=wrong)
        with self.assertRaisesRegex(baton.BadRequest, "needs a priority"):
            self.client.elector(self.name, preempt=True)

    def candidate(self, owner: str, **options: Any) -> baton.Elector:
        client = baton.open(self.environment.store, owner=owner)
        self.addCleanup(client.close)
        return client.elector(self.name, ttl=TTL, cooldown=0.01, **options)

    def wait_for_priorities(self, number: int) -> None:
        """Until so many candidates have said theirs."""
        def said() -> bool:
            locks = self.baton("lock", "list")["locks"]
            entries = [lock for lock in locks
                       if lock["name"].startswith(f"leader-candidate/{self.name}/")]
            return len(entries) == number

        self.assertTrue(poll_until(said))
