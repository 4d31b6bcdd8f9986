#pragma once

/* Baton for C, and for every language that can call C: locks, elections and what a fence and an
 * outbox need, in the shared library libbaton.so.0. docs/c.md has an example.
 *
 *     baton_client* client = NULL;
 *     baton_lease* lease = NULL;
 *     baton_acquire_options options = BATON_ACQUIRE_OPTIONS_INIT;
 *     options.wait_ms = 5000;
 *
 *     if (baton_open("postgres://app@db/shop", NULL, &client, &error) != BATON_OK) ...
 *
 *     if (baton_acquire(client, "report/2026-11", &options, &lease, &error) != BATON_OK) ...
 *
 * What is so for all calls:
 *
 *   threads     Any call may be made from any thread, also with a handle that another thread uses
 *               or frees at that moment: it is then refused, or has come before.
 *   handles     Clients, leases, requests and electors are handles: numbers that have the type of
 *               a pointer, never dereferenced and never used twice. NULL, one of another kind and
 *               one that has been freed are refused with BATON_BAD_REQUEST, or by the answer that
 *               the call names for it.
 *   ownership   What a call gives through `baton_… **` belongs to the caller, who ends it by the
 *               function of its kind: baton_close, baton_lease_free, baton_request_free,
 *               baton_elector_close. Arguments are copied before the call returns. Texts that are
 *               returned as `const char *` live for ever. A file descriptor belongs to its handle:
 *               poll it, do not read or close it, and forget it before the handle is freed.
 *   results     int: BATON_OK or another BATON_… code; the `error`, which may be NULL, says more. A
 *               handle or number that a call gives is written only with BATON_OK; a handle is set
 *               to NULL otherwise.
 *   texts       UTF-8, ended by a NUL. Calls with `char *buffer, size_t size` write at most `size`
 *               bytes with the NUL, and answer how long the whole text is without it, as snprintf
 *               does: with NULL and 0 they only answer that. Of a handle that is refused it is 0.
 *   options     NULL: the defaults. Else `size` is that of the struct the caller was compiled with;
 *               the rest is 0 where the default is wanted. Fields are only ever added at the end.
 *   durations   milliseconds, in fields and arguments that end in _ms.
 *   names       as on the command line: subject[/resource...], with %2F for a '/' inside a part.
 *   exceptions  None comes out, no callback goes in: nothing of the caller runs on other threads.
 *   fork        A child can neither use nor end what its parent has: its calls are refused with
 *               BATON_BAD_REQUEST or BATON_LOST, its leases are not valid, and freeing a handle
 *               there does nothing to the parent. It opens its own client. */

#include <stddef.h>
#include <stdint.h>

#include "baton/export.h"

#ifdef __cplusplus
#define BATON_NOEXCEPT noexcept
extern "C" {
#else
#define BATON_NOEXCEPT
#endif

typedef struct baton_client baton_client;
typedef struct baton_lease baton_lease;     /* of a lock or of a term of office */
typedef struct baton_request baton_request; /* an acquire that is under way */
typedef struct baton_elector baton_elector;

/* ---- errors ---- */

enum {
  BATON_OK = 0,
  BATON_BAD_NAME = 1,
  BATON_BAD_REQUEST = 2, /* an argument, a handle, or an option out of range */
  BATON_BAD_URL = 3,
  BATON_BUSY = 4,      /* somebody else holds it, and the caller did not want to wait */
  BATON_TIMED_OUT = 5, /* the wait ended first */
  BATON_SUPERSEDED = 6,
  BATON_DENIED = 7, /* by the policy or schema */
  BATON_DEADLOCK = 8,
  BATON_LOST = 9, /* the lease has ended: what was asked was not done */
  BATON_UNSUPPORTED = 10,
  BATON_UNAVAILABLE = 11, /* the store cannot be reached, or not in time */
  BATON_CANCELLED = 12,
  BATON_FENCED = 13,
  BATON_BAD_STORE = 14, /* no schema, a newer one, a damaged file: an operator must act */
  BATON_UNAUTHORIZED = 15,
  BATON_PENDING = 100, /* no answer yet: ask again */
  BATON_INTERNAL = 101 /* out of memory or of file descriptors */
};

typedef struct baton_error {
  size_t size;       /* sizeof(baton_error) */
  int32_t code;      /* as the call answers */
  int32_t in_doubt;  /* not 0: what was asked may have taken effect all the same */
  int32_t retryable; /* not 0: asking again later may succeed */
  int32_t reserved;
  int64_t retry_after_ms;
  char message[1000]; /* one line for people; no password */
} baton_error;

#define BATON_ERROR_INIT                      \
  {                                           \
    sizeof(baton_error), 0, 0, 0, 0, 0, { 0 } \
  }

BATON_EXPORT const char* baton_version(void) BATON_NOEXCEPT;       /* "0.1.0" */
BATON_EXPORT const char* baton_code_name(int code) BATON_NOEXCEPT; /* "timed_out" */

/* ---- clients ---- */

typedef struct baton_client_options {
  size_t size;
  const char* owner;       /* who we are, for people; default host:pid */
  int64_t open_timeout_ms; /* default 10 s */
  uint64_t max_waiting;    /* acquires that wait at once; default 100,000 */
} baton_client_options;

#define BATON_CLIENT_OPTIONS_INIT \
  { sizeof(baton_client_options), NULL, 0, 0 }

/* URLs are in docs/stores.md. Blocks for open_timeout_ms at most. */
BATON_EXPORT int baton_open(const char* url, const baton_client_options* options,
                            baton_client** client, baton_error* error) BATON_NOEXCEPT;

/* Leases, requests and electors of the client stay as they are: it ends with the last of them. */
BATON_EXPORT int baton_close(baton_client* client, baton_error* error) BATON_NOEXCEPT;

BATON_EXPORT size_t baton_owner(baton_client* client, char* buffer, size_t size) BATON_NOEXCEPT;

/* ---- locks ---- */

enum {
  BATON_X = 0, /* exclusive: the default */
  BATON_IS = 1,
  BATON_IX = 2,
  BATON_S = 3, /* shared */
  BATON_U = 4, /* update */
  BATON_SIX = 5
};

#define BATON_WAIT_LONGEST (-1) /* as long as there is: 24 hours */

typedef struct baton_acquire_options {
  size_t size;
  int32_t mode; /* BATON_X, ... */
  int32_t reserved;
  int64_t ttl_ms;  /* default 30 s */
  int64_t wait_ms; /* 0: not at all */
  int64_t at_least_for_ms;
  const char* region;              /* default DEFAULT */
  const char* predicate;           /* default holding */
  const char* const* metadata;     /* name, value, name, value, ..., NULL */
  const int64_t* if_ordinal_below; /* else BATON_SUPERSEDED */
  const int64_t* note_ordinal;     /* written with the grant */
  const char* note_text;
} baton_acquire_options;

#define BATON_ACQUIRE_OPTIONS_INIT \
  { sizeof(baton_acquire_options), 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL }

/* Block for wait_ms and one request; that is given up after 5.5 s with most stores. */
BATON_EXPORT int baton_acquire(baton_client* client, const char* name,
                               const baton_acquire_options* options, baton_lease** lease,
                               baton_error* error) BATON_NOEXCEPT;

/* As with a wait_ms of 0. */
BATON_EXPORT int baton_try_acquire(baton_client* client, const char* name,
                                   const baton_acquire_options* options, baton_lease** lease,
                                   baton_error* error) BATON_NOEXCEPT;

/* All of the names under one lease, or none of them. */
BATON_EXPORT int baton_acquire_all(baton_client* client, const char* const* names, size_t count,
                                   const baton_acquire_options* options, baton_lease** lease,
                                   baton_error* error) BATON_NOEXCEPT;

/* The same without blocking: for event loops, and for waits that somebody may want to end. */
BATON_EXPORT int baton_acquire_async(baton_client* client, const char* const* names, size_t count,
                                     const baton_acquire_options* options, baton_request** request,
                                     baton_error* error) BATON_NOEXCEPT;

/* Becomes readable when the request has its answer, and stays so. */
BATON_EXPORT int baton_request_fd(baton_request* request, int* fd,
                                  baton_error* error) BATON_NOEXCEPT;

/* Blocks for timeout_ms at most. BATON_PENDING: no answer yet. Else the answer of the acquire; the
 * lease of one that was granted can be taken once. */
BATON_EXPORT int baton_request_take(baton_request* request, int64_t timeout_ms, baton_lease** lease,
                                    baton_error* error) BATON_NOEXCEPT;

/* Ends the wait: the answer is BATON_CANCELLED, or a lease that was granted meanwhile. */
BATON_EXPORT int baton_request_cancel(baton_request* request, baton_error* error) BATON_NOEXCEPT;

/* Also cancels it; a lease that nobody has taken is released, in the background. */
BATON_EXPORT int baton_request_free(baton_request* request, baton_error* error) BATON_NOEXCEPT;

/* ---- leases ---- */

/* 1 while nobody else can have been granted the lock, by the clock of this machine; else 0. A
 * process that is stopped after it has asked does not know: only a fence is safe against that. */
BATON_EXPORT int baton_lease_valid(baton_lease* lease) BATON_NOEXCEPT;

/* For how long it stays valid if no renewal comes through any more. */
BATON_EXPORT int64_t baton_lease_remaining_ms(baton_lease* lease) BATON_NOEXCEPT;

/* Becomes readable, and stays so, before anybody else can be granted the lock: when it could not be
 * renewed, was broken, or was released; of a term, when its work has to end. */
BATON_EXPORT int baton_lease_fd(baton_lease* lease, int* fd, baton_error* error) BATON_NOEXCEPT;

BATON_EXPORT size_t baton_lease_why_lost(baton_lease* lease, char* buffer,
                                         size_t size) BATON_NOEXCEPT;
BATON_EXPORT size_t baton_lease_key(baton_lease* lease, char* buffer, size_t size) BATON_NOEXCEPT;
BATON_EXPORT size_t baton_lease_grant(baton_lease* lease, char* buffer, size_t size) BATON_NOEXCEPT;
BATON_EXPORT int baton_lease_mode(baton_lease* lease) BATON_NOEXCEPT;       /* -1 if refused */
BATON_EXPORT int64_t baton_lease_ttl_ms(baton_lease* lease) BATON_NOEXCEPT; /* 0 if refused */
BATON_EXPORT uint64_t baton_lease_token(baton_lease* lease) BATON_NOEXCEPT; /* 0 if refused */

/* What a fence is shown, as the text of BATON_FENCE (docs/fencing.md): every name of the lease and
 * every ancestor of one, with modes and tokens. */
BATON_EXPORT size_t baton_lease_fence_text(baton_lease* lease, char* buffer,
                                           size_t size) BATON_NOEXCEPT;

/* The same one by one: the length of the key behind `index`, 0 if there is none. */
BATON_EXPORT size_t baton_lease_token_at(baton_lease* lease, size_t index, uint64_t* token,
                                         int32_t* mode, char* key, size_t size) BATON_NOEXCEPT;

/* The note as the grant found it, or as this lease last wrote it. `ordinal` may be NULL. */
BATON_EXPORT size_t baton_lease_note(baton_lease* lease, int64_t* ordinal, char* buffer,
                                     size_t size) BATON_NOEXCEPT;

/* NULL leaves that part of the note as it is. Blocks for timeout_ms; 0: 2 s. */
BATON_EXPORT int baton_lease_set_note(baton_lease* lease, const int64_t* ordinal, const char* text,
                                      int64_t timeout_ms, baton_error* error) BATON_NOEXCEPT;

/* To the supremum of both modes, or down if the held one covers `mode`. Blocks for wait_ms and one
 * request. */
BATON_EXPORT int baton_lease_convert(baton_lease* lease, int32_t mode, int64_t wait_ms,
                                     baton_error* error) BATON_NOEXCEPT;

typedef struct baton_release_options {
  size_t size;
  const char* to; /* hand over to a waiter of this owner, out of turn */
  const int64_t* note_ordinal;
  const char* note_text;
  int64_t timeout_ms; /* default 2 s */
} baton_release_options;

#define BATON_RELEASE_OPTIONS_INIT \
  { sizeof(baton_release_options), NULL, NULL, NULL, 0 }

/* After BATON_OK the lock is free for the next. BATON_LOST: it was so already. After
 * BATON_UNAVAILABLE in doubt, the client goes on releasing in the background. The handle stays, to
 * be freed. Of a term: its work has ended, and the elector lets the lock go; no options. */
BATON_EXPORT int baton_lease_release(baton_lease* lease, const baton_release_options* options,
                                     baton_error* error) BATON_NOEXCEPT;

/* Releases what is still held, and waits for that for at most 2 s. */
BATON_EXPORT int baton_lease_free(baton_lease* lease, baton_error* error) BATON_NOEXCEPT;

/* ---- elections ---- */

typedef struct baton_elector_options {
  size_t size;
  int64_t ttl_ms;            /* default 10 s */
  int64_t grace_ms;          /* default 5 s: how long the work of a term may take to end */
  int64_t retry_interval_ms; /* default 1 s */
  int64_t cooldown_ms;       /* default 500 ms: before it stands again after giving up */
  const char* region;
  const char* const* metadata; /* as in baton_acquire_options */
  const int32_t* priority;     /* whom a term goes to when it ends: docs/election.md */
  int32_t preempt;             /* not 0, with a priority: take over from a leader of a lower one */
  int32_t never_lead;          /* not 0: do not stand at all */
} baton_elector_options;

#define BATON_ELECTOR_OPTIONS_INIT \
  { sizeof(baton_elector_options), 0, 0, 0, 0, NULL, NULL, NULL, 0, 0 }

/* Stands as a candidate in the background until it is closed, again after every term. */
BATON_EXPORT int baton_elect(baton_client* client, const char* election,
                             const baton_elector_options* options, baton_elector** elector,
                             baton_error* error) BATON_NOEXCEPT;

/* Readable while there is a term to take, or the election has ended by an error. */
BATON_EXPORT int baton_elector_fd(baton_elector* elector, int* fd,
                                  baton_error* error) BATON_NOEXCEPT;

/* Blocks for timeout_ms at most, until this replica leads; BATON_PENDING: it does not yet. The term
 * is a lease: watch its descriptor, show its tokens to the fence, first thing. When it is readable
 * the work has to end; when the work has ended, call baton_lease_release or baton_lease_free: only
 * then can another replica lead, unless the lease has run out. */
BATON_EXPORT int baton_elector_take(baton_elector* elector, int64_t timeout_ms, baton_lease** term,
                                    baton_error* error) BATON_NOEXCEPT;

/* The last thing that went wrong, as a store that could not be reached; it stands on. */
BATON_EXPORT size_t baton_elector_trouble(baton_elector* elector, char* buffer,
                                          size_t size) BATON_NOEXCEPT;

/* Makes the descriptor of a term readable, and waits until the work of it has ended and the lock is
 * let go, but not much longer than grace_ms and 5 s. */
BATON_EXPORT int baton_elector_close(baton_elector* elector, baton_error* error) BATON_NOEXCEPT;

/* ---- databases ---- */

enum { BATON_POSTGRESQL = 1, BATON_SQLITE = 2 };

/* The statement that checks and records a lease, with the text of baton_lease_fence_text as its
 * only parameter, first in the transaction that writes. PostgreSQL: an error with SQLSTATE BT001
 * refuses. SQLite: no row refuses, and the transaction has to be open already. */
BATON_EXPORT const char* baton_fence_check_sql(int database) BATON_NOEXCEPT;

/* SQLite, where the locks are in the same file (there is a table baton_lock): with the same
 * parameter, after that; here a row refuses. NULL for PostgreSQL, whose check has it in it. */
BATON_EXPORT const char* baton_fence_granted_sql(int database) BATON_NOEXCEPT;

typedef struct baton_event {
  size_t size;
  const char* type;      /* DocumentUploaded */
  const char* aggregate; /* what it has happened to */
  const char* payload;   /* JSON; default {} */
  const char* id;        /* a UUID; default: a new one */
  const char* aggregate_type;
  const char* exchange;       /* where it is published: required */
  const char* routing_key;    /* default: made from the type, document.uploaded */
  const char* const* headers; /* name, value, name, value, ..., NULL */
  const char* correlation_id;
  const char* causation_id;
  const char* traceparent;
  int32_t version; /* of the payload's schema; default 1 */
  int32_t quiet;   /* PostgreSQL: no NOTIFY, for two-phase commits */
} baton_event;

#define BATON_EVENT_INIT \
  { sizeof(baton_event), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0 }

/* The statement that adds an event to the outbox, inside the transaction that makes it true, and
 * its parameters $1, ... or ?1, ..., as a JSON array: the first is the id of the event. `length` is
 * that of the whole text; BATON_BAD_REQUEST says what is wrong with the event. */
BATON_EXPORT const char* baton_outbox_add_sql(int database) BATON_NOEXCEPT;
BATON_EXPORT int baton_event_parameters(int database, const baton_event* event, char* buffer,
                                        size_t size, size_t* length,
                                        baton_error* error) BATON_NOEXCEPT;

/* ---- preparing, once ---- */

/* The tables of the locks, as `baton store migrate`. Blocks for timeout_ms; 0: 10 s. Needs the
 * right to create tables, as the next two: services should not have it. */
BATON_EXPORT int baton_migrate(const char* url, int64_t timeout_ms,
                               baton_error* error) BATON_NOEXCEPT;

/* In the database of the data: sqlite:PATH or postgres://... */
BATON_EXPORT int baton_install_fence(const char* database_url, baton_error* error) BATON_NOEXCEPT;
BATON_EXPORT int baton_install_outbox(const char* database_url, baton_error* error) BATON_NOEXCEPT;

#ifdef __cplusplus
}
#endif
