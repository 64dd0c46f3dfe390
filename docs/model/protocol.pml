/*
 * The protocol of processes, leases and commits, which Spin checks exhaustively (docs/decisions/0023-model-of-the-protocol.md):
 *
 *   spin -a docs/model/protocol.pml && gcc -O1 -DNP -o pan pan.c && ./pan -l
 *
 * Two processes follow FEEDS feeds. A process can pause between any two steps, because Spin tries every order of the steps. There
 * are at most FAULTS faults: a lease expires while its process is paused or cut off, a process ends, a statement is late or its response
 * is lost, a failover loses commits, an operator rewinds a feed or erases a run. A leader that releases its feed counts as a fault too.
 * Only faults cause repetitions, so every execution ends. `pan -l` reports one that does not as a non-progress cycle.
 */
#ifndef FEEDS
#define FEEDS 1
#endif
#ifndef FAULTS
#define FAULTS 3
#endif
#ifndef EARLY_TAKES
#define EARLY_TAKES 0 /* Takes from living processes, as if a lease could expire at any time. */
#endif
#define END 2    /* The position at the end of a feed. There is one entry between two positions. */
#define NOBODY 0 /* Processes are 1 and 2. */

/* Deliberate mistakes. Each violates a property, for example: spin -DNO_POSITION -a docs/model/protocol.pml */
#ifdef NO_EPOCH_RAISE
#define RAISE 0
#else
#define RAISE 1
#endif
#ifdef NO_LIVENESS_CHECK
#define IS_FREE(f) true
#else
#define IS_FREE(f) (feeds[f].holder == NOBODY || !alive[feeds[f].holder] || feeds[f].takes <= EARLY_TAKES)
#endif
#ifdef NO_RETAKE
#define MAY_TAKE(p, f) (IS_FREE(f) && feeds[f].holder != p)
#else
#define MAY_TAKE(p, f) (IS_FREE(f) || feeds[f].holder == p)
#endif
#define HOLDS(p, f, e) (feeds[f].holder == p && feeds[f].epoch == e)
#if defined(NO_HOLDER)
#define FENCE(p, f, page) (feeds[f].epoch == page.epoch && feeds[f].position == page.from)
#elif defined(NO_POSITION)
#define FENCE(p, f, page) HOLDS(p, f, page.epoch)
#elif defined(EXPIRY_AS_FENCE)
#define FENCE(p, f, page) ((alive[p] || HOLDS(p, f, page.epoch)) && feeds[f].position == page.from)
#else
#define FENCE(p, f, page) (HOLDS(p, f, page.epoch) && feeds[f].position == page.from)
#endif
#ifdef STALE_POSITION
#define POSITION(f, read) (feeds[f].position < read -> read : feeds[f].position)
#else
#define POSITION(f, read) feeds[f].position
#endif

#define FAULT used < limit -> used++
#define ENTRIES(from, to) ((1 << (to)) - (1 << (from)))

mtype = { TAKE, RELEASE, COMMIT };
/* A row of the table `feeds`. `entries` is the set of its stored entries. `takes` exists only in the model. */
typedef Feed { byte holder; byte epoch; byte position; byte entries; byte takes };
/* A statement. A commit stores a page, which was read from a position and leads to another. */
typedef Statement { mtype kind; byte feed; byte epoch; byte take; byte from; byte to };

Feed feeds[FEEDS];
bool alive[3] = true;  /* Whether a process has a row in the table `processes` that has not expired. */
byte stopped = NOBODY; /* The process that has ended. */
Statement late[3];     /* The statement of each process that it does not wait for, and that may still be executed. */
Feed earlier[FEEDS];   /* The state to which a failover will return. */
bool isLagging, hasFailedOver; /* Whether there is such a state, and whether the database has returned to one. */
byte used, limit;      /* Faults. */
hidden Feed noFeed; hidden Statement none;

/* Executes a statement of a process, and checks the properties. Writes nothing if its condition is not met. */
inline execute(me, f, what, sent) {
  if
  :: what == TAKE && MAY_TAKE(me, f) ->
    feeds[f].holder = me;
    feeds[f].epoch = feeds[f].epoch + RAISE;
    feeds[f].takes++;
    /* Nothing is taken without a reason: once at the start, and at most twice after a fault. */
    assert(feeds[f].epoch <= 1 + EARLY_TAKES + 2 * used)
  :: what == RELEASE && HOLDS(me, f, sent.epoch) -> feeds[f].holder = NOBODY
  :: what == COMMIT && FENCE(me, f, sent) ->
    /* Only the holder commits, and only under its latest take. A failover may grant one epoch to a process twice. */
    assert(feeds[f].holder == me);
    assert(feeds[f].takes == sent.take || hasFailedOver);
    /* No entry before the position is missing. */
    feeds[f].entries = feeds[f].entries | ENTRIES(sent.from, sent.to);
    assert((feeds[f].entries & ENTRIES(0, sent.to)) == ENTRIES(0, sent.to));
    /* The position moves only along pages. */
    assert(feeds[f].position == sent.from);
    feeds[f].position = sent.to
  :: else
  fi
}

inline copyFeed(source, target) {
  target.holder = source.holder; target.epoch = source.epoch; target.takes = source.takes;
  target.position = source.position; target.entries = source.entries
}
inline copyStatement(source, target) {
  target.kind = source.kind; target.feed = source.feed; target.epoch = source.epoch; target.take = source.take;
  target.from = source.from; target.to = source.to
}

/* Sends a statement that gets no response. It is executed at once, later or never. */
inline sendLate(me, f, what, sent) {
  late[me].kind == 0 && used < limit -> used++;
  copyStatement(sent, late[me]); late[me].kind = what; late[me].feed = f
}

/* A process with one of its feeds. */
proctype Replica(byte p; byte f) {
  Statement my; /* Its lease, and the page that it has read. */
  {
    goto standby;
standby:
    alive[p]; /* A heartbeat had a response. */
    atomic {
      MAY_TAKE(p, f) ->
      if
      :: execute(p, f, TAKE, my); my.epoch = feeds[f].epoch; my.take = feeds[f].takes
      :: sendLate(p, f, TAKE, my); goto standby
      fi
    };
reading:
    atomic {
      if
      :: HOLDS(p, f, my.epoch) -> my.from = POSITION(f, my.from)
      :: else -> copyStatement(none, my); goto standby
      fi
    };
leading:
    atomic {
      if
      :: my.from < END ->
        if :: my.to = my.from + 1 :: my.from + 2 <= END -> my.to = my.from + 2 fi;
        if
        :: FENCE(p, f, my) -> execute(p, f, COMMIT, my); my.from = my.to; my.to = 0; goto leading
        :: !FENCE(p, f, my) -> my.to = 0; goto reading
        :: sendLate(p, f, COMMIT, my) ->
          if :: my.from = my.to; my.to = 0; goto leading /* Two commits overlap. */ :: my.to = 0; goto reading fi
        fi
      :: my.from == END && !(FENCE(p, f, my) && feeds[f].position == END) -> /* Any other empty page changes nothing. */
        my.to = END; execute(p, f, COMMIT, my); my.to = 0; goto reading
      :: FAULT; execute(p, f, RELEASE, my); copyStatement(none, my); goto standby
      :: sendLate(p, f, RELEASE, my); copyStatement(none, my); goto standby
      fi
    }
  } unless { atomic { stopped == p -> copyStatement(none, my) } }
}

/* The lease of a process, and its late statement. */
proctype Process(byte p) {
  byte f;
  do
  :: atomic { !alive[p] && stopped != p -> alive[p] = true } /* Any other heartbeat changes nothing. */
  :: atomic { alive[p] && stopped == p -> alive[p] = false }
  :: atomic { alive[p] && stopped != p && FAULT; alive[p] = false }
  :: atomic { stopped == NOBODY && FAULT; stopped = p }
  :: atomic { late[p].kind != 0 -> f = late[p].feed;
      if :: execute(p, f, late[p].kind, late[p]) :: true fi;
      f = 0; copyStatement(none, late[p])
    }
  od
}

/* Rewinds a feed, or erases a run: raises the epoch, and moves the position back or not at all. */
proctype Operator(byte f) {
  do
  :: atomic { FAULT; feeds[f].epoch++;
      do :: feeds[f].position > 0 -> feeds[f].position-- :: break od
    }
  od
}

/* Failovers. At the end, each feed has a holder that has not ended, and is read to its end. */
init {
  byte f;
  atomic {
    select(limit : 0 .. FAULTS);
    run Process(1); run Process(2); for (f : 0 .. FEEDS - 1) { run Replica(1, f); run Replica(2, f); run Operator(f) }
  };
  do
  :: atomic { !isLagging && FAULT; isLagging = true;
      for (f : 0 .. FEEDS - 1) { copyFeed(feeds[f], earlier[f]) }
    }
  :: atomic { isLagging -> isLagging = false; hasFailedOver = true;
      for (f : 0 .. FEEDS - 1) { copyFeed(earlier[f], feeds[f]); copyFeed(noFeed, earlier[f]) };
      /* Heartbeats are lost too, and the clock of the new primary may differ. */
      if :: alive[1] = true :: alive[1] = false fi;
      if :: alive[2] = true :: alive[2] = false fi
    }
  :: atomic { timeout ->
      for (f : 0 .. FEEDS - 1) { assert(feeds[f].holder != NOBODY && feeds[f].holder != stopped && feeds[f].position == END) }; break
    }
  od
}
