/* The ledger of finished pods as a model for Spin: what executors write, in every order of events.
 *
 * docs/proof.md explains it. One Job, P pods, and E executors that write at any time, so none of them knows that
 * it does not lead. Sets of pods are bit masks: bit p is pod p. The compiler's options choose what can happen;
 * checks.txt has the combinations that are checked:
 *
 *   P, E             pods (1 to 4), executors (1 to 3)
 *   PAR, COMPL       spec.parallelism, spec.completions
 *   BACKOFF          spec.backoffLimit: one more failure makes the Job fail
 *   INDEXED          pods 0 and 2 have index 0, pods 1 and 3 have index 1
 *   RUNNING          the pods run at the start; otherwise executors create them
 *   FAIL             pods may fail
 *   LOST             answers to writes may be lost, after the write or without it; with LIVE so many in all
 *   CRASH=n          executors end and start again, n times in all
 *   LATEJOBS         after a restart, the Job may be as it was seen before it
 *   PUTBACK=n        somebody puts finalizers back
 *   FLIP=n           an ended pod changes its phase
 *   USER             somebody deletes pods
 *   SUSPEND=n        somebody suspends or resumes the Job
 *   DELETE           somebody deletes the Job, with its pods before it or after it
 *   RECREATE         ... and creates it again under its name
 *   ADOPT            pod 0 exists at the start, and nothing controls it
 *   EXPECT           a status write takes time, and the watch may show another one meanwhile
 *   FREEZE           all executors but the first may stop for ever
 *   LIVE             faults cease some time; then the end of every run is checked
 *   WRONG_...        a change of the protocol that must be found; changes.txt has them
 *
 * STEP names a write as test/kit/ledger names it. A test there compares the two lists.
 */
#define STEP(name)

#define bit_(p) (1 << (p))
#define has(m, p) (((m) >> (p)) & 1)
#define pop(m) (has(m, 0) + has(m, 1) + has(m, 2) + has(m, 3))
#define ix(m) (((m) | ((m) >> 2)) & 3)
#define least(a, b) ((a) < (b) -> (a) : (b))

/* breaks_... are never true. Each names a rule in what pan prints: "assertion violated ((...)||breaks_I2)". */
hidden byte breaks_I1, breaks_I2, breaks_I3, breaks_I4, breaks_I6, breaks_I8, breaks_order, breaks_liveness;

/* What the API server has stored: the pods, ... */
byte used;        /* existed at any time */
byte ex;          /* exist */
byte end, bad;    /* have ended; as failed */
byte del;         /* have a deletion timestamp */
byte fin;         /* have the tracking finalizer */
byte own0, own1;  /* are controlled by the Job with UID 0, by that with UID 1 */
/* ... and the Job: its UID is 1 after it was created again. */
bit jex = 1, juid, jdel, susp;
byte uS, uF;      /* status.uncountedTerminatedPods */
byte nS, nF;      /* status.succeeded, status.failed */
byte cidx;        /* status.completedIndexes */
byte interim;     /* 1: SuccessCriteriaMet, 2: FailureTarget */
byte final;       /* 1: Complete, 2: Failed */

/* What really happened, which no executor can read. */
byte rec;         /* were recorded at any time */
byte excused;     /* were released without record, for a reason that I1 allows */
byte endHeld;     /* had the finalizer when they ended */
byte cnt[P];      /* how often counted */
byte rev[P];      /* how often the finalizer was put back */

/* Faults so far. calm: there are no more. */
byte crashes, putbacks, flips, toggles, losses;
bit calm;

/* What an executor knows. */
typedef View {
	byte ex, end, bad, del, fin, own0, own1;
	bit jex, uid, jdel, susp;
	byte uS, uF, nS, nF, cidx, interim, final;
	bit fresh;     /* the Job is the stored version: a write with its resourceVersion is accepted */
	bit staleJob;  /* the Job must be read before the next decision */
	bit stalePods; /* the pods must be listed before the next decision */
	bit unknown;   /* a creation has an unknown outcome */
	byte release;  /* pods that the decision under way still has to release */
	byte leaving;  /* pods that the decision under way has deleted because of a verdict */
	/* What follows from that; think() keeps it. */
	byte verdict, want, working, released, known, done, busy;
	bit changed;
#ifdef EXPECT
	bit sent, base; /* a status write is under way; it is still for the stored version */
	byte euS, euF, enS, enF, ecidx, einterim, efinal, erelease
#endif
}
View x[E];
#define X x[e]
#define jobsPods(uid) ((uid) -> own1 : own0)

/* --- what executors read ------------------------------------------------------------------------------------- */

#define take(f, m) X.f = (X.f & ~(m)) | (f & (m))
inline seePods(e, m) { take(ex, m); take(end, m); take(bad, m); take(del, m); take(fin, m); take(own0, m); take(own1, m) }

#define differs(e, p) has((X.ex ^ ex) | ((X.ex | ex) & ((X.end ^ end) | (X.bad ^ bad) | (X.del ^ del) | (X.fin ^ fin) | (X.own0 ^ own0) | (X.own1 ^ own1))), p)

#ifdef EXPECT
#define otherLedger(e) ((X.uS != uS || X.uF != uF || X.nS != nS || X.nF != nF || X.cidx != cidx) && \
	!(X.sent && X.euS == uS && X.euF == uF && X.enS == nS && X.enF == nF && X.ecidx == cidx))
#else
#define otherLedger(e) (X.uS != uS || X.uF != uF || X.nS != nS || X.nF != nF || X.cidx != cidx)
#endif

/* The fence: after somebody else has changed the ledger, the pods are listed before the next decision. */
inline seeJob(e) {
	if
#ifndef WRONG_NO_FENCE
	:: X.uid == juid && otherLedger(e) -> X.stalePods = 1
#endif
#ifndef WRONG_NO_FENCE_AT_FIRST
	:: X.uid != juid && (uS | uF | nS | nF | cidx) -> X.stalePods = 1
#endif
	:: else
	fi;
	if
	:: X.uid != juid || !jex -> X.release = 0
	:: else
	fi;
	X.leaving = 0; /* the decision under way is not on this version, so its write will be refused */
	X.jex = jex; X.uid = juid; X.jdel = jdel; X.susp = susp;
	X.uS = uS; X.uF = uF; X.nS = nS; X.nF = nF; X.cidx = cidx; X.interim = interim;
#ifdef WRONG_INTERIM_IS_FINAL
	X.final = interim;
#else
	X.final = final;
#endif
	X.fresh = 1
}

/* --- the engine: a decision follows from a View alone ---------------------------------------------------------- */

#ifdef WRONG_BY_NAME
#define mine(e) (X.ex & (X.own0 | X.own1))
#else
#define mine(e) (X.ex & (X.uid -> X.own1 : X.own0))
#endif

#if defined(WRONG_COUNT_BEFORE_CONFIRMED)
#define confirmed(list) (list)
#elif defined(WRONG_MISSING_IS_HELD)
#define confirmed(list) ((list) & ~held & X.ex)
#else
#define confirmed(list) ((list) & ~held)
#endif
#ifdef WRONG_LIST_FOLLOWS_PHASE
#define recorded 0
#else
#define recorded (X.uS | X.uF)
#endif
#ifdef WRONG_VERDICT_AGAIN
#define declared 0
#else
#define declared X.interim
#endif
#ifdef WRONG_FINAL_WITH_PODS
#define podsGone true
#else
#define podsGone ((mine(e) & ~X.end) == 0 && X.leaving == 0)
#endif
#ifdef WRONG_FINAL_WITH_UNCOUNTED
#define noHolders true
#else
#define noHolders (rows == 0)
#endif
#ifdef WRONG_FINAL_WITH_UNCOUNTED
#define allCounted true
#else
#define allCounted ((nuS | nuF) == 0)
#endif
#ifdef WRONG_FINAL_WITHOUT_INTERIM
#define interimWritten true
#else
#define interimWritten (X.interim == ninterim)
#endif

/* The decision: the next status, the pods that are released once it is written, and what it is made of. */
hidden byte nuS, nuF, nnS, nnF, ncidx, ninterim, nfinal, nrelease;
hidden byte held, rows, newOK, newBad, successes, failures;

inline decide(e) {
	held = mine(e) & X.fin;
	rows = held & (X.end | X.del) & ~X.leaving;
	/* Pods that are deleted with their Job say nothing. */
	newOK = rows & ~recorded & ~(X.jdel && X.interim == 0 -> X.del : 0);
	newBad = newOK & ~(X.end & ~X.bad);
	newOK = newOK & ~newBad;
	nuS = X.uS & ~confirmed(X.uS);
	nuF = (X.uF & ~confirmed(X.uF)) | newBad;
	nnS = X.nS + pop(confirmed(X.uS));
	nnF = X.nF + pop(confirmed(X.uF));
	failures = X.nF + pop(X.uF) + pop(newBad);
#ifdef INDEXED
	ncidx = X.cidx | ix(newOK);
	successes = pop(ncidx);
#ifdef WRONG_INDEX_COUNTS_PODS
	nnS = X.nS + pop(newOK);
#else
	nnS = successes;
#endif
#else
	ncidx = 0;
	nuS = nuS | newOK;
	successes = X.nS + pop(X.uS) + pop(newOK);
#endif
#ifdef WRONG_LIST_FOLLOWS_PHASE
	nuS = nuS & ~newBad; nuF = nuF & ~newOK;
#endif
	/* 1: the Job succeeds, 2: it fails. What was declared stays. */
	ninterim = (declared -> declared : (failures > BACKOFF -> 2 : (successes >= COMPL -> 1 : 0)));
	nuF = nuF | (ninterim == 2 && !X.jdel -> X.leaving & mine(e) & ~recorded : 0);
	nrelease = rows | (X.leaving & mine(e)) | (X.jdel -> held & ~X.end & ~X.del : 0);
#ifdef WRONG_RELEASE_ONCE
	nrelease = nrelease & ~recorded;
#endif
	nfinal = (X.final == 0 && ninterim != 0 && interimWritten && podsGone && noHolders && allCounted -> ninterim : X.final)
}

/* think makes what guards ask follow from the view. */
inline think(e) {
	decide(e);
	X.verdict = ninterim;
	X.want = (successes >= COMPL -> 0 : least(PAR, COMPL - successes));
	X.working = mine(e) & ~X.end & ~X.del;
	X.released = nrelease;
	X.known = rows & recorded;
	X.done = held & (X.end | X.del);
	X.busy = (ncidx | ix(X.working));
	X.changed = (nuS != X.uS || nuF != X.uF || nnS != X.nS || nnF != X.nF || ncidx != X.cidx);
	X.changed = (X.changed || ninterim != X.interim || nfinal != X.final)
}

#define runs(e) (X.verdict == 0 && !X.jdel && X.final == 0)
#define excess(e) (X.susp || pop(X.working) > X.want)

/* --- what executors write ------------------------------------------------------------------------------------ */

#ifdef LOST
#ifdef LIVE
#define mayLose (!calm && losses < LOST)
#define lose losses++
#else
#define mayLose true
#define lose skip
#endif
#else
#define mayLose false
#define lose skip
#endif

hidden byte i, n;

/* stale: the Job has a new version. Only executor e may know it. */
inline stale(e) {
	i = 0;
	do
	:: i < E ->
		x[i].fresh = (i == (e) && x[i].fresh);
#ifdef EXPECT
		x[i].base = 0;
#endif
		i++
	:: else -> break
	od;
	i = 0
}

/* store is what the API server stores. Here stand the rules for it, which know what really happened. */
inline store(e) {
	i = 0;
	do
	:: i < P ->
		if
		:: has((uS | uF) & ~(nuS | nuF), i) -> STEP(count)
			cnt[i]++;
			assert(cnt[i] <= 1 + rev[i] || breaks_I2);
			assert(!has(fin & ex & jobsPods(juid), i) || rev[i] > 0 || breaks_I2)
		:: has((nuS | nuF) & ~(uS | uF), i) -> STEP(record)
			assert(cnt[i] <= rev[i] || breaks_I2);
			assert(has(jobsPods(juid), i) || breaks_I8)
		:: else
		fi;
		i++
	:: else -> break
	od;
	assert(((nuS & nuF) | (uS & nuF) | (uF & nuS)) == 0 || breaks_I3);
	rec = rec | nuS | nuF;
	STEP(completeIndex)
	assert((cidx & ~ncidx) == 0 || breaks_I2);
	STEP(declare)
	assert(interim == 0 || interim == ninterim || breaks_I4);
	if
	:: nfinal != final -> STEP(finish)
		assert((final == 0 && interim == nfinal) || breaks_I4);
		assert((nuS | nuF) == 0 || breaks_I4);
		/* The writer need not know a pod that another executor has just created, or adopted. */
		n = jobsPods(juid) & ex & X.ex & (X.own0 | X.own1);
		i = 0;
		do
		:: i < P -> assert(!has(n, i) || has(end & ~fin, i) || rev[i] > 0 || breaks_I4); i++
		:: else -> break
		od
	:: else
	fi;
	uS = nuS; uF = nuF; nS = nnS; nF = nnF; cidx = ncidx; interim = ninterim; final = nfinal;
	i = 0; n = 0;
	do
	:: i < P -> n = n + (has(jobsPods(juid), i) -> cnt[i] : 0); i++
	:: else -> break
	od;
#ifdef INDEXED
	assert((nS == pop(cidx) && nF == n) || breaks_I2);
#else
	assert(nS + nF == n || breaks_I2);
#endif
	n = 0;
	stale(e)
}

inline learn(e) {
	X.uS = nuS; X.uF = nuF; X.nS = nnS; X.nF = nnF; X.cidx = ncidx; X.interim = ninterim; X.final = nfinal;
	X.release = nrelease; X.leaving = 0
}
inline forget(e) { X.staleJob = 1; X.fresh = 0; X.leaving = 0 }

/* The write replaces the version that was decided on. Otherwise the API server refuses it. */
#ifdef EXPECT
#define isCurrent(e) X.base
#else
#define isCurrent(e) (X.fresh && jex)
#endif

inline writeStatus(e) {
	if
	:: isCurrent(e) -> d_step { store(e) };
		if
		:: d_step { true -> learn(e) }
		:: d_step { mayLose -> lose; forget(e) }
		fi
#ifdef WRONG_NO_VERSION
	:: d_step { !isCurrent(e) && jex && juid == X.uid -> store(e); X.fresh = 1; learn(e) }
#else
	:: d_step { !isCurrent(e) ->
#ifndef WRONG_REFUSED_IS_REPEATED
		forget(e)
#endif
		}
#endif
	:: d_step { mayLose -> lose;
#ifdef WRONG_LOST_IS_WRITTEN
		learn(e)
#else
		forget(e)
#endif
		}
	fi
}

/* I1: an ended pod is released only after a status accounts for it. Others are pods that still run, pods of a
 * Job that is gone, being deleted or finished, and pods that are deleted because the Job has succeeded without them. */
#define jobOf(p) (jex && has(jobsPods(juid), p))
#define accounted(p) (has(rec, p) || (has(end & ~bad, p) && (cidx & ix(bit_(p)))))
#define mayLetGo(p) (accounted(p) || !has(end, p) || !jobOf(p) || jdel || final != 0 || (interim == 1 && has(del, p)))

inline letGo(p) {
	if
	:: has(ex & fin, p) ->
		assert(mayLetGo(p) || breaks_I1);
		excused = excused | (accounted(p) -> 0 : bit_(p));
		fin = fin & ~bit_(p)
	:: else
	fi
}

/* The answer shows the pod, or it is lost, and the write may have taken effect or not. */
inline releasePod(e, p) {
	if
	:: d_step { true -> X.release = X.release & ~bit_(p); letGo(p);
#ifndef WRONG_RELEASE_UNSEEN
		seePods(e, bit_(p))
#endif
		}
	:: d_step { mayLose -> lose; X.release = X.release & ~bit_(p); letGo(p) }
	:: d_step { mayLose -> lose; X.release = X.release & ~bit_(p);
#ifdef WRONG_LOST_IS_RELEASED
		X.fin = X.fin & ~bit_(p)
#endif
		}
	fi
}

/* Slots are taken in order, those of each index in its own. */
#ifdef INDEXED
#define canCreate(e, p) (!has(used, p) && ((p) < 2 || has(used >> 2 * ((p) / 2) - 2, (p) % 2)) && (X.busy & ix(bit_(p))) == 0)
#else
#define canCreate(e, p) (!has(used, p) && (used & (bit_(p) - 1)) == bit_(p) - 1)
#endif

#define true_(m) ((m) & ex & jobsPods(juid))

inline born(e, p) {
	STEP(createPod)
	/* I6, by what is really active, and what has really succeeded. A pod that was deleted before it ended may count as failed.
	 * With FLIP or PUTBACK it is not clear what that is. */
#if E == 1 && !defined(LATEJOBS)
	assert(!jex || juid != X.uid || pop(true_(~end & ~del)) < PAR || breaks_I6);
#if !defined(INDEXED) && !defined(FLIP) && !defined(PUTBACK)
	assert(!jex || juid != X.uid || pop(true_(~end & ~del)) + nS + pop(uS) + pop(true_(fin & end & ~bad & ~del & ~uS & ~uF)) < COMPL || breaks_I6);
#endif
#endif
	used = used | bit_(p); ex = ex | bit_(p); fin = fin | bit_(p);
	if
	:: X.uid -> own1 = own1 | bit_(p)
	:: else -> own0 = own0 | bit_(p)
	fi
}

inline createPod(e, p) {
	if
	:: d_step { true -> born(e, p);
#ifndef WRONG_OWN_WRITE_UNSEEN
		seePods(e, bit_(p))
#endif
		}
	:: d_step { mayLose -> lose; born(e, p);
#ifndef WRONG_NOT_IN_FLIGHT
		X.unknown = 1
#endif
		}
	:: d_step { mayLose -> lose; X.unknown = 1 }
	fi
}

/* --- an executor --------------------------------------------------------------------------------------------- */

#ifdef EXPECT
#define idle(e) !X.sent
#else
#define idle(e) true
#endif
/* Nothing has to be read first, and the last decision is carried out. */
#define ready(e) (X.jex && !X.staleJob && !X.stalePods && !X.unknown && X.release == 0 && idle(e))

#ifdef WRONG_WRITES_THE_SAME
#define toWrite(e) true
#else
#define toWrite(e) X.changed
#endif
#ifdef WRONG_ORPHANS_ARE_LEFT
#define orphan(e, p) false
#elif defined(WRONG_ORPHAN_BY_CACHE)
#define orphan(e, p) (X.jex -> !has((X.uid -> X.own1 : X.own0), p) : 1)
#else
#define orphan(e, p) (!jobOf(p))
#endif
#ifdef WRONG_RUNNING_UNSEEN
#define asSeen(e, p) has(ex, p)
#else
#define asSeen(e, p) (!differs(e, p))
#endif
#ifdef WRONG_DELETE_BEFORE_VERDICT
#define mayEnd(e) (X.verdict != 0)
#else
#define mayEnd(e) (X.verdict != 0 && X.interim == X.verdict)
#endif
#ifdef WRONG_ADOPT_UNSEEN
#define adoptable(e, p) has(ex, p)
#else
#define adoptable(e, p) (!differs(e, p))
#endif

/* What an executor may do about pod p. Each line is one step. */
#define POD(e, p) \
	/* The watch shows the pod as it is, or as it was between its end and its release. */ \
	:: d_step { differs(e, p) -> seePods(e, bit_(p)) } \
	:: d_step { has(X.ex & X.fin & ~X.end & ex & endHeld & ~fin, p) -> take(end, bit_(p)); take(bad, bit_(p)) } \
	:: atomic { has(X.release, p) -> STEP(release) releasePod(e, p) } \
	:: atomic { ready(e) && runs(e) && !X.susp && canCreate(e, p) && pop(X.working) < X.want -> createPod(e, p) } \
	/* A pod too many, or of a suspended Job, is released as long as it is as it was seen, and then deleted. */ \
	:: atomic { ready(e) && runs(e) && has(X.working & X.fin, p) && excess(e) -> \
		if \
		:: d_step { asSeen(e, p) -> STEP(releaseRunning) letGo(p); seePods(e, bit_(p)) } \
		:: d_step { asSeen(e, p) && mayLose -> lose; letGo(p) } \
		:: d_step { !asSeen(e, p) -> seePods(e, bit_(p)) } \
		fi } \
	:: d_step { ready(e) && runs(e) && has(X.working & ~X.fin, p) && excess(e) -> \
		if \
		:: !differs(e, p) -> STEP(deletePod) del = del | bit_(p) \
		:: else \
		fi; seePods(e, bit_(p)) } \
	/* The pods of a Job with a verdict are deleted after the verdict is written. */ \
	:: atomic { ready(e) && X.final == 0 && !X.jdel && mayEnd(e) && has(X.working, p) -> STEP(deletePod) \
		assert(interim != 0 || !jobOf(p) || breaks_order); \
		if \
		:: d_step { true -> X.leaving = X.leaving | (X.fin & bit_(p)); del = del | (ex & bit_(p)); seePods(e, bit_(p)) } \
		:: d_step { mayLose -> lose; X.leaving = 0; del = del | (ex & bit_(p)) } \
		fi } \
	/* A pod runs although its Job has finished. */ \
	:: d_step { ready(e) && X.final != 0 && has(X.working, p) -> \
		if \
		:: !differs(e, p) -> STEP(deletePod) del = del | bit_(p) \
		:: else \
		fi; seePods(e, bit_(p)) } \
	/* The API server says that the pod's Job does not exist. */ \
	:: d_step { has(X.ex & X.fin & (X.own0 | X.own1), p) && orphan(e, p) -> STEP(releaseOrphan) letGo(p); seePods(e, bit_(p)) } \
	ADOPTION(e, p)

#ifdef ADOPT
#define ADOPTION(e, p) \
	:: d_step { X.jex && !X.jdel && X.final == 0 && has(X.ex & ~(X.own0 | X.own1) & ~X.del, p) && jex && !jdel && juid == X.uid -> \
		if \
		:: adoptable(e, p) -> STEP(adopt) own0 = own0 | (juid -> 0 : bit_(p)); own1 = own1 | (juid -> bit_(p) : 0); fin = fin | bit_(p); \
			endHeld = endHeld | (end & bit_(p)) \
		:: else \
		fi; seePods(e, bit_(p)) }
#else
#define ADOPTION(e, p)
#endif

inline restart(e) {
	X.release = 0; X.leaving = 0; X.staleJob = 0; X.stalePods = 0; X.unknown = 0;
#ifdef EXPECT
	X.sent = 0;
#endif
#ifndef WRONG_LATE_PODS
	seePods(e, 255)
#endif
}

proctype executor(byte e) {
	d_step { think(e) };
	do
	:: atomic { if
	POD(e, 0)
#if P > 1
	POD(e, 1)
#endif
#if P > 2
	POD(e, 2)
#endif
#if P > 3
	POD(e, 3)
#endif
	:: d_step { !X.fresh && !X.staleJob -> seeJob(e) }
#ifndef WRONG_LOST_IS_NOT_READ
	:: d_step { X.staleJob && idle(e) -> seeJob(e); X.staleJob = 0 }
#endif
	:: d_step { (X.stalePods || X.unknown) && idle(e) -> seePods(e, 255); X.unknown = 0;
#ifndef WRONG_LISTS_AGAIN
		X.stalePods = 0
#endif
		}
	/* A decision. A routine status may wait, and then only recorded pods are released. */
#ifdef EXPECT
	:: d_step { ready(e) && X.final == 0 && X.changed -> decide(e); X.sent = 1; X.base = X.fresh && jex;
		X.euS = nuS; X.euF = nuF; X.enS = nnS; X.enF = nnF; X.ecidx = ncidx; X.einterim = ninterim; X.efinal = nfinal; X.erelease = nrelease }
	:: atomic { X.sent -> d_step {
			nuS = X.euS; nuF = X.euF; nnS = X.enS; nnF = X.enF; ncidx = X.ecidx; ninterim = X.einterim; nfinal = X.efinal; nrelease = X.erelease;
			X.sent = 0; X.euS = 0; X.euF = 0; X.enS = 0; X.enF = 0; X.ecidx = 0; X.einterim = 0; X.efinal = 0; X.erelease = 0;
			X.fresh = X.base }
		writeStatus(e) }
#else
	:: atomic { ready(e) && X.final == 0 && toWrite(e) -> d_step { decide(e) }; writeStatus(e) }
#endif
	:: d_step { ready(e) && X.final == 0 && !X.changed && (X.released | X.leaving) != 0 -> X.release = X.released; X.leaving = 0 }
	:: d_step { ready(e) && X.final == 0 && X.verdict == 0 && !X.jdel && X.known != 0 -> X.release = X.known }
#ifndef WRONG_FINISHED_IS_LEFT
	:: d_step { ready(e) && X.final != 0 && X.done != 0 -> X.release = X.done }
#endif
#ifdef WRONG_RELEASE_BEFORE_RECORD
	:: d_step { ready(e) && X.final == 0 && X.done != 0 -> X.release = X.done }
#endif
#ifdef CRASH
	:: d_step { crashes < CRASH && !calm -> crashes++; restart(e); seeJob(e); X.stalePods = 0 }
#ifdef LATEJOBS
	:: d_step { crashes < CRASH && !calm -> crashes++; restart(e) }
#endif
#endif
#ifdef FREEZE
	:: e > 0 && !calm -> break
#endif
	fi; d_step { think(e) } }
	od
}

/* --- the others: nodes, users, the garbage collector ----------------------------------------------------------- */

#define NODE(p) \
	:: d_step { has(ex & ~end, p) -> end = end | bit_(p); endHeld = endHeld | (fin & bit_(p)) } \
	FAILURE(p) \
	:: d_step { has(ex & end & del & ~fin, p) -> ex = ex & ~bit_(p) } \
	:: d_step { has(ex & ~del & (own0 | own1), p) && !jobOf(p) -> del = del | bit_(p) } \
	OTHERS(p)
#ifdef FAIL
#define FAILURE(p) :: d_step { has(ex & ~end, p) -> end = end | bit_(p); bad = bad | bit_(p); endHeld = endHeld | (fin & bit_(p)) }
#else
#define FAILURE(p)
#endif

#ifdef USER
#define DELETION(p) :: d_step { has(ex & ~del, p) && !calm -> del = del | bit_(p) }
#else
#define DELETION(p)
#endif
#ifdef PUTBACK
#define RETURN(p) :: d_step { has(ex & ~fin, p) && putbacks < PUTBACK && !calm -> putbacks++; fin = fin | bit_(p); rev[p]++; excused = excused & ~bit_(p) }
#else
#define RETURN(p)
#endif
#ifdef FLIP
#define CHANGE(p) :: d_step { has(ex & end, p) && flips < FLIP && !calm -> flips++; bad = bad ^ bit_(p) }
#else
#define CHANGE(p)
#endif
#define OTHERS(p) DELETION(p) RETURN(p) CHANGE(p)

proctype others() {
	do
	NODE(0)
#if P > 1
	NODE(1)
#endif
#if P > 2
	NODE(2)
#endif
#if P > 3
	NODE(3)
#endif
#ifdef SUSPEND
	:: d_step { jex && toggles < SUSPEND && !calm -> toggles++; susp = 1 - susp; stale(E) }
#endif
#ifdef DELETE
	:: d_step { jex && !jdel && !calm -> jdel = 1; del = del | (ex & jobsPods(juid)); stale(E) }
	:: d_step { jex && !calm -> jex = 0; stale(E) }
	:: d_step { jex && jdel && (ex & jobsPods(juid)) == 0 -> jex = 0; stale(E) }
#endif
#ifdef RECREATE
	:: d_step { !jex && juid == 0 && !calm -> jex = 1; juid = 1; jdel = 0; susp = 0;
		uS = 0; uF = 0; nS = 0; nF = 0; cidx = 0; interim = 0; final = 0; stale(E) }
#endif
#ifdef LIVE
	:: !calm -> calm = 1
#endif
	od
}

/* The end of a run: nothing can happen any more. */
#ifdef INDEXED
/* A pod that succeeds after it was recorded as failed stays that (I3). */
#define isCounted(p) (cnt[p] > 0 || (!has(bad, p) && (cidx & ix(bit_(p))) != 0))
#else
#define isCounted(p) (cnt[p] > 0)
#endif
#define allWell(p) (!has(used, p) || ((!has(ex & end, p) || !has(fin, p)) && (!jobOf(p) || !has(end, p) || has(excused, p) || isCounted(p))))

proctype atTheEnd() {
	timeout ->
	assert((uS | uF) == 0 || !jex || breaks_liveness);
	assert(interim == 0 || final != 0 || !jex || breaks_liveness);
	assert(allWell(0) || breaks_liveness);
#if P > 1
	assert(allWell(1) || breaks_liveness);
#endif
#if P > 2
	assert(allWell(2) || breaks_liveness);
#endif
#if P > 3
	assert(allWell(3) || breaks_liveness)
#endif
}

init {
	atomic {
#ifdef RUNNING
		used = bit_(P) - 1; ex = used; own0 = used; fin = used;
#ifdef ADOPT
		own0 = own0 & ~1; fin = fin & ~1;
#endif
#elif defined(ADOPT)
		used = 1; ex = 1;
#endif
		i = 0;
		do
		:: i < E ->
			x[i].jex = 1; x[i].fresh = 1;
			x[i].ex = ex; x[i].own0 = own0; x[i].fin = fin;
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < E -> run executor(i); i++
		:: else -> break
		od;
		i = 0;
		run others();
#ifdef LIVE
		run atTheEnd()
#endif
	}
}
