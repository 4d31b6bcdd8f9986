"""What the conformance suite promises of locks, by way of Python."""

import math
import threading
from datetime import timedelta

import baton
from support import PATIENCE, TTL, Case, poll_until

MODES = ["IS", "IX", "S", "U", "SIX", "X"]
COMPATIBLE = {
    "IS": {"IS", "IX", "S", "U", "SIX"},
    "IX": {"IS", "IX"},
    "S": {"IS", "S", "U"},
    "U": {"IS", "S"},
    "SIX": {"IS"},
    "X": set(),
}


class Promises(Case):
    def test_only_one_holds_an_exclusive_lock(self) -> None:
        with self.client.hold(self.name) as lease:
            self.assertTrue(lease.valid)
            self.assertFalse(lease.lost.is_set())
            with self.assertRaises(baton.Busy):
                self.client.acquire(self.name)
            self.assertIsNone(self.client.try_acquire(self.name))
            with self.client.hold(self.name + "/other") as other:
                self.assertTrue(other.valid)
        self.assertTrue(lease.lost.is_set())
        with self.client.hold(self.name):
            pass

    def test_the_compatibility_matrix_holds_for_every_pair_of_modes(self) -> None:
        for held in MODES:
            with self.client.hold(self.name, mode=held) as lease:
                self.assertEqual(lease.mode, held)
                for asked in MODES:
                    beside = self.client.try_acquire(self.name, mode=asked)
                    self.assertEqual(beside is not None, asked in COMPATIBLE[held], (held, asked))
                    if beside is not None:
                        beside.release()

    def test_tokens_grow_from_holder_to_holder(self) -> None:
        last = 0
        for _ in range(5):
            with self.client.hold(self.name) as lease:
                self.assertGreater(lease.token, last)
                last = lease.token

    def test_waiters_are_served_in_the_order_they_came(self) -> None:
        served = []

        def wait(number: int) -> None:
            with self.client.hold(self.name, wait=PATIENCE):
                served.append(number)

        threads = [threading.Thread(target=wait, args=(number,)) for number in range(3)]
        with self.client.hold(self.name):
            for number, thread in enumerate(threads):
                thread.start()
                self.wait_for_waiters(self.name, number + 1)
        for thread in threads:
            thread.join()
        self.assertEqual(served, [0, 1, 2])

    def test_a_set_is_taken_whole_or_not_at_all(self) -> None:
        a, b, c = (f"{self.name}/{part}" for part in "abc")
        with self.client.hold([a, b]) as lease:
            self.assertEqual([token.key for token in lease.tokens],
                             [f"DEFAULT:{name.replace('/', ':')}" for name in (a, b)])
            with self.assertRaises(baton.Busy):
                self.client.acquire([b, c])
            with self.client.hold(c):
                pass

    def test_a_conversion_goes_up_and_down(self) -> None:
        with self.client.hold(self.name, mode="S") as lease:
            with self.client.hold(self.name, mode="S"):
                with self.assertRaises(baton.Busy):
                    lease.convert("X")
            before = lease.token
            lease.convert("X")
            self.assertEqual(lease.mode, "X")
            self.assertGreater(lease.token, before)
            self.assertIsNone(self.client.try_acquire(self.name, mode="S"))
            lease.convert("S")
            with self.client.hold(self.name, mode="S"):
                pass

    def test_a_note_outlives_its_writer_and_passes_to_the_next_holder(self) -> None:
        with self.client.hold(self.name, note="begun", ordinal=7) as lease:
            lease.set_note("half ✓")
            self.assertEqual(lease.note.text, "half ✓")
        lease = self.client.acquire(self.name)
        self.assertEqual(lease.note, baton.Note(7, "half ✓"))
        lease.release(note="done", ordinal=8)
        with self.client.hold(self.name) as last:
            self.assertEqual(last.note, baton.Note(8, "done"))

    def test_who_comes_second_for_an_ordinal_is_superseded(self) -> None:
        with self.client.hold(self.name, if_ordinal_below=5, ordinal=5):
            pass
        with self.assertRaises(baton.Superseded):
            self.client.acquire(self.name, if_ordinal_below=5, ordinal=5)

    def test_at_least_for_keeps_a_released_lock_taken(self) -> None:
        with self.client.hold(self.name, at_least_for=60):
            pass
        self.assertIsNone(self.client.try_acquire(self.name))

    def test_a_release_to_a_node_hands_over_out_of_turn(self) -> None:
        owner = []
        last = baton.open(self.environment.store, owner="last")

        def wait(client: baton.Client, who: str) -> None:
            with client.hold(self.name, wait=PATIENCE):
                owner.append(who)

        lease = self.client.acquire(self.name)
        threads = [threading.Thread(target=wait, args=(self.client, "first")),
                   threading.Thread(target=wait, args=(last, "last"))]
        for number, thread in enumerate(threads):
            thread.start()
            self.wait_for_waiters(self.name, number + 1)
        lease.release(to="last")
        for thread in threads:
            thread.join()
        self.assertEqual(owner, ["last", "first"])

    def test_a_release_to_nobody_is_refused_and_the_block_releases_all_the_same(self) -> None:
        with self.client.hold(self.name) as lease:
            with self.assertRaises(baton.Denied):
                lease.release(to="nobody")
            self.assertTrue(lease.valid)
        self.client.acquire(self.name).release()

    def test_what_cannot_be_asked_is_refused(self) -> None:
        for refused in (lambda: self.client.acquire(""),
                        lambda: self.client.acquire([]),
                        lambda: self.client.acquire("a\0b"),
                        lambda: self.client.acquire(self.name, mode="Z"),
                        lambda: self.client.acquire(self.name, ttl=-1),
                        lambda: self.client.acquire(self.name, ttl=0.001),
                        lambda: baton.open("nowhere:"),
                        lambda: baton.open("\0")):
            with self.assertRaises(baton.BadRequest):
                refused()
        for refused in (lambda: self.client.acquire(self.name, ttl="30s"),
                        lambda: self.client.acquire(self.name, wait="5"),
                        lambda: self.client.elector(self.name, ttl=timedelta(seconds=30)),
                        lambda: self.client.elector(self.name).lead("5")):
            with self.assertRaisesRegex(baton.BadRequest, "is in seconds, as a number"):
                refused()
        with self.assertRaises(baton.Error) as caught:
            self.client.acquire([f"{self.name}/{i}" for i in range(1000)])
        self.assertEqual(caught.exception.code, "unsupported")

    def test_a_number_that_does_not_fit_is_refused_and_not_cut_off(self) -> None:
        lease = self.client.acquire(self.name)
        lease.set_note(ordinal=2**63 - 1)
        self.assertEqual(lease.note.ordinal, 2**63 - 1)
        for number in (2**63, 2**64 + 5, 2**70, -(2**63) - 1, 1.5, "7"):
            for refused in (lambda: self.client.acquire(self.name, ordinal=number),
                            lambda: self.client.acquire(self.name, if_ordinal_below=number),
                            lambda: lease.set_note(ordinal=number),
                            lambda: lease.release(ordinal=number)):
                with self.assertRaises(baton.BadRequest, msg=repr(number)):
                    refused()
        lease.check()  # what was refused has changed nothing
        self.assertEqual(lease.note.ordinal, 2**63 - 1)
        for seconds in (-1, 2**31, 2**70, math.inf, math.nan):
            for refused in (lambda: self.client.acquire(self.name, ttl=seconds),
                            lambda: self.client.acquire(self.name, wait=seconds),
                            lambda: self.client.acquire(self.name, at_least_for=seconds),
                            lambda: self.client.elector(self.name, grace=seconds),
                            lambda: self.client.elector(self.name, retry_interval=seconds),
                            lambda: self.client.elector(self.name, cooldown=seconds),
                            lambda: baton.open(self.environment.store, open_timeout=seconds),
                            lambda: baton.migrate(self.environment.store, timeout=seconds),
                            lambda: lease.convert("S", wait=seconds),
                            lambda: lease.set_note("x", timeout=seconds),
                            lambda: lease.release(timeout=seconds)):
                with self.assertRaises(baton.BadRequest, msg=repr(seconds)):
                    refused()
        with self.assertRaises(baton.BadRequest):
            lease.lost.wait(math.nan)
        lease.release()

    def test_a_zero_that_the_library_would_take_for_its_default_is_refused(self) -> None:
        with self.client.hold(self.name) as lease:
            for refused in (lambda: self.client.acquire(self.name + "/0", ttl=0),
                            lambda: self.client.elector(self.name, ttl=0.0001),
                            lambda: self.client.elector(self.name, grace=0),
                            lambda: self.client.elector(self.name, retry_interval=0),
                            lambda: self.client.elector(self.name, cooldown=0),
                            lambda: baton.open(self.environment.store, open_timeout=0),
                            lambda: baton.migrate(self.environment.store, timeout=0),
                            lambda: lease.set_note("x", timeout=0),
                            lambda: lease.release(timeout=0)):
                with self.assertRaisesRegex(baton.BadRequest, "at least 1 ms"):
                    refused()


class StoreAway(Case):
    def test_a_store_that_is_not_there_is_unavailable(self) -> None:
        with self.assertRaises(baton.Unavailable) as caught:
            baton.open("redis://127.0.0.1:1/0", open_timeout=1)
        self.assertTrue(caught.exception.retryable)

    def test_a_holder_whose_store_has_died_is_told(self) -> None:
        if self.environment.kind != "redis":
            self.skipTest("shown with a server that can be killed")
        told = threading.Event()
        lease = self.client.acquire(self.name, ttl=TTL)
        lease.on_lost(lambda _: told.set())
        self.environment.redis.stop()
        self.assertTrue(told.wait(PATIENCE))
        with self.assertRaises(baton.Lost):
            lease.check()


class Waiting(Case):
    def test_a_waiter_gets_the_lock_when_it_is_released(self) -> None:
        got = []

        def wait() -> None:
            with self.client.hold(self.name, wait=PATIENCE) as lease:
                got.append(lease.token)

        thread = threading.Thread(target=wait)
        with self.client.hold(self.name) as lease:
            thread.start()
            self.wait_for_waiters(self.name, 1)
            self.assertEqual(got, [])
        thread.join()
        self.assertGreater(got[0], lease.token)

    def test_a_waiter_gets_the_lock_of_a_process_that_was_killed(self) -> None:
        child = self.child("hold", self.name)
        token = int(child.says().split()[1])
        child.kill()
        with self.client.hold(self.name, wait=PATIENCE) as lease:
            self.assertGreater(lease.token, token)

    def test_a_wait_ends_at_its_deadline_and_leaves_no_ticket(self) -> None:
        with self.client.hold(self.name):
            with self.assertRaises(baton.TimedOut):
                self.client.acquire(self.name, wait=0.05)
            self.wait_for_waiters(self.name, 0)

    def test_ctrl_c_ends_a_wait_and_leaves_no_ticket(self) -> None:
        import signal

        with self.client.hold(self.name):
            child = self.child("wait", self.name)
            self.assertEqual(child.says(), "waits")
            self.wait_for_waiters(self.name, 1)
            child.kill(signal.SIGINT)
            self.assertEqual(child.says(), "interrupted")
            self.wait_for_waiters(self.name, 0)

    def test_many_threads_wait_at_once_and_are_all_served(self) -> None:
        served = []

        def wait() -> None:
            with self.client.hold(self.name, wait=PATIENCE):
                self.assertFalse(inside.locked())
                with inside:
                    served.append(1)

        inside = threading.Lock()
        threads = [threading.Thread(target=wait) for _ in range(16)]
        with self.client.hold(self.name):
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(served), 16)

    def test_other_threads_run_while_one_waits(self) -> None:
        with self.client.hold(self.name) as lease:
            thread = threading.Thread(
                target=lambda: self.client.acquire(self.name, wait=PATIENCE).release())
            thread.start()
            self.wait_for_waiters(self.name, 1)  # by this thread, which holds no GIL for it
            self.assertTrue(lease.valid)
        thread.join()

    def test_two_processes_never_hold_it_together(self) -> None:
        path = self.environment.path(f"number-{self.name.replace('/', '-')}")
        with open(path, "w", encoding="utf-8"):
            pass
        children = [self.child("count", self.name, path, "20") for _ in range(2)]
        for child in children:
            self.assertEqual(child.says(), "done")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(int(file.read()), 40)


class Leases(Case):
    def test_a_held_lease_is_renewed_for_as_long_as_it_is_held(self) -> None:
        with self.client.hold(self.name, ttl=TTL) as lease:
            with self.assertRaises(baton.TimedOut):
                self.client.acquire(self.name, wait=2.5 * TTL)
            self.assertTrue(lease.valid)
            self.assertGreater(lease.remaining, 0)
            lease.check()

    def test_a_broken_lease_is_told_and_its_lock_is_free_after_it_lets_go(self) -> None:
        told = threading.Event()
        lease = self.client.acquire(self.name)
        lease.on_lost(lambda _: told.set())
        self.assertFalse(lease.lost.wait(0))
        self.order("lock", "break", self.name, "--reason", "test it")
        self.assertTrue(lease.lost.wait(PATIENCE))
        self.assertTrue(told.wait(PATIENCE))
        with self.assertRaises(baton.Lost) as caught:
            lease.check()
        self.assertIn("test it", str(caught.exception))
        lease.release()  # which the one who broke it waits for
        with self.client.hold(self.name, wait=PATIENCE):
            pass

    def test_a_block_that_lost_its_lock_raises_and_one_that_raised_says_why(self) -> None:
        with self.assertRaises(baton.Lost):
            with self.client.hold(self.name) as lease:
                self.order("lock", "break", self.name, "--reason", "test")
                self.assertTrue(lease.lost.wait(PATIENCE))
        with self.assertRaises(ZeroDivisionError):
            with self.client.hold(self.name, wait=PATIENCE) as lease:
                self.order("lock", "break", self.name, "--reason", "test")
                self.assertTrue(lease.lost.wait(PATIENCE))
                1 / 0

    def test_a_release_is_no_loss(self) -> None:
        told = []
        with self.client.hold(self.name) as lease:
            lease.on_lost(told.append)
        self.assertTrue(lease.lost.wait(PATIENCE))
        mine = [thread for thread in threading.enumerate() if lease.key in thread.name]
        for thread in mine:
            thread.join()
        self.assertEqual(told, [])

    def test_a_lease_that_is_forgotten_is_released(self) -> None:
        lease = self.client.acquire(self.name)
        self.assertIsNone(self.client.try_acquire(self.name))
        del lease
        with self.client.hold(self.name, wait=PATIENCE):
            pass

    def test_a_lease_keeps_its_client(self) -> None:
        ttl = 4 * TTL  # longer than a busy machine keeps a renewal
        lease = baton.open(self.environment.store).acquire(self.name, ttl=ttl)
        with self.assertRaises(baton.TimedOut):
            self.client.acquire(self.name, wait=ttl + TTL)
        lease.release()

    def test_the_descriptor_of_a_lease_can_be_polled(self) -> None:
        import selectors

        with selectors.DefaultSelector() as selector:
            lease = self.client.acquire(self.name)
            selector.register(lease.lost, selectors.EVENT_READ)
            self.assertEqual(selector.select(0), [])
            lease.release()
            self.assertEqual(len(selector.select(PATIENCE)), 1)

    def test_a_forked_child_is_refused_and_opens_its_own(self) -> None:
        import os

        lease = self.client.acquire(self.name)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with self.assertRaisesRegex(baton.BadRequest, "fork"):
                    self.client.acquire(self.name + "/child")
                self.assertFalse(lease.valid)
                self.assertEqual(lease.fence_text, "")
                with self.assertRaises(baton.Lost):
                    lease.check()
                with baton.open(self.environment.store) as own:
                    with own.hold(self.name + "/child", wait=PATIENCE):
                        status = 0
                    self.assertIsNone(own.try_acquire(self.name))
                del lease
            except BaseException as problem:  # noqa: BLE001: must not return into the test
                print(problem, flush=True)
                status = 1
            finally:
                os._exit(status)
        ended = []
        self.assertTrue(poll_until(lambda: bool(ended) or self._ended(pid, ended)))
        self.assertEqual(ended, [0])
        lease.check()
        lease.release()

    @staticmethod
    def _ended(pid: int, into: list) -> bool:
        import os

        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            into.append(os.waitstatus_to_exitcode(status))
        return bool(done)


