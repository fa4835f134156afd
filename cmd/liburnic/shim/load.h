/* What load.c, signals.c, altstack.c and forked.c share. */
#ifndef URNIC_LOAD_H
#define URNIC_LOAD_H

#include <stdbool.h>
#include <stdint.h>

struct urnic_engine;

/* load.c: the engine, or NULL if it is not loaded. */
const struct urnic_engine *urnic_loaded(void);

/* load.c: how many milliseconds the engine takes at most when the process exits. */
uint32_t urnic_leave_patience(void);

/* load.c: whether an address is in the engine's code. Safe in signal handlers, but while it is being loaded. */
bool urnic_in_engine(uintptr_t address);

/*
 * signals.c. Around loading: before it, the handlers are noted; after it, the program
 * gets back what the runtime has taken. Around a fork nobody changes handlers; in the
 * child of a process that had the engine, nothing of ours is left.
 */
void urnic_signals_before(void);
void urnic_signals_after(bool loaded);
void urnic_signals_before_fork(void);
void urnic_signals_after_fork(void);
void urnic_signals_in_child(void);

/* altstack.c: gives this thread an alternate signal stack, after init. */
void urnic_altstack_init(void);
void urnic_altstack(void);

/* forked.c: closes, in a child, what the engine has open. Its variables are in [low, high). */
void urnic_close_inherited(uintptr_t low, uintptr_t high);

#endif
