; The ledger's invariant, for any number of pods and executors. invariant.sh gives this file to cpp, and what comes out
; to z3: once for each step, and once more for each clause that is left out.
;
; A state has a function for each fact. STATE declares it twice: with the suffix 0 before the step, with 1 after it.
; A step is about one executor d and one pod q. z3 looks for a state that keeps the invariant, and whose next state
; does not: "unsat" says that there is none.
#define ALL_P forall ((p Pod))
#define ALL_EP forall ((e Exec) (p Pod))
#define ALL_E forall ((e Exec))

(declare-sort Pod 0)
(declare-sort Exec 0)
(declare-const d Exec)
(declare-const q Pod)

#define STATE(s) \
	(declare-fun end##s (Pod) Bool)          /* has ended */ \
	(declare-fun fin##s (Pod) Bool)          /* has the tracking finalizer */ \
	(declare-fun unc##s (Pod) Bool)          /* stands in status.uncountedTerminatedPods */ \
	(declare-fun once##s (Pod) Bool)         /* was counted */ \
	(declare-fun twice##s (Pod) Bool)        /* was counted again */ \
	(declare-fun interim##s () Bool)         /* the Job has SuccessCriteriaMet or FailureTarget */ \
	(declare-fun final##s () Bool)           /* the Job has Complete or Failed */ \
	(declare-fun vend##s (Exec Pod) Bool)    /* what an executor knows: the pod has ended, */ \
	(declare-fun vfin##s (Exec Pod) Bool)    /* has the finalizer, */ \
	(declare-fun vunc##s (Exec Pod) Bool)    /* stands in the list */ \
	(declare-fun vinterim##s (Exec) Bool) \
	(declare-fun fresh##s (Exec) Bool)       /* its Job is the stored version */ \
	(declare-fun fenced##s (Exec) Bool)      /* its pods are at least as new as its Job */ \
	(declare-fun rel##s (Exec Pod) Bool)     /* its decision under way releases the pod */
STATE(0)
STATE(1)

; The clauses. C1 is I2, C2 is I1, C3 and C4 are I4. The others make these stay true.
#define C1(s) (ALL_P (not (twice##s p)))
#define C2(s) (ALL_P (=> (not (fin##s p)) (or (unc##s p) (once##s p))))
#define C3(s) (=> final##s (ALL_P (and (end##s p) (not (fin##s p)) (not (unc##s p)))))
#define C4(s) (=> final##s interim##s)
#define C5(s) (ALL_P (=> (once##s p) (and (not (fin##s p)) (not (unc##s p)))))
#define C6(s) (ALL_EP (=> (not (vfin##s e p)) (not (fin##s p))))
#define C7(s) (ALL_EP (=> (vend##s e p) (end##s p)))
#define C8(s) (ALL_EP (=> (fresh##s e) (= (vunc##s e p) (unc##s p))))
#define C9(s) (ALL_EP (=> (and (fresh##s e) (fenced##s e) (once##s p)) (not (vfin##s e p))))
#define C10(s) (ALL_EP (=> (rel##s e p) (or (unc##s p) (once##s p))))
#define C11(s) (ALL_E (=> (vinterim##s e) interim##s))

#if WITHOUT == 1
#undef C1
#define C1(s) true
#elif WITHOUT == 2
#undef C2
#define C2(s) true
#elif WITHOUT == 3
#undef C3
#define C3(s) true
#elif WITHOUT == 4
#undef C4
#define C4(s) true
#elif WITHOUT == 5
#undef C5
#define C5(s) true
#elif WITHOUT == 6
#undef C6
#define C6(s) true
#elif WITHOUT == 7
#undef C7
#define C7(s) true
#elif WITHOUT == 8
#undef C8
#define C8(s) true
#elif WITHOUT == 9
#undef C9
#define C9(s) true
#elif WITHOUT == 10
#undef C10
#define C10(s) true
#elif WITHOUT == 11
#undef C11
#define C11(s) true
#endif
#define INVARIANT(s) (and C1(s) C2(s) C3(s) C4(s) C5(s) C6(s) C7(s) C8(s) C9(s) C10(s) C11(s))
/* What must be true in every state. It is also asked for without a clause, because it is what the others are for. */
#define SAFE(s) (and (ALL_P (not (twice##s p))) \
	(ALL_P (=> (not (fin##s p)) (or (unc##s p) (once##s p)))) \
	(=> final##s (ALL_P (and (end##s p) (not (fin##s p)) (not (unc##s p))))) \
	(=> final##s interim##s))

; What a step leaves as it is.
#define SAME_P(f) (assert (ALL_P (= (f##1 p) (f##0 p))))
#define SAME_EP(f) (assert (ALL_EP (= (f##1 e p) (f##0 e p))))
#define SAME_E(f) (assert (ALL_E (= (f##1 e) (f##0 e))))
#define SAME(f) (assert (= f##1 f##0))
; What a step changes for pod q, and for executor d.
#define SET_P(f, value) (assert (ALL_P (= (f##1 p) (ite (= p q) value (f##0 p)))))
#define SET_EP(f, value) (assert (ALL_EP (= (f##1 e p) (ite (and (= e d) (= p q)) value (f##0 e p)))))
#define SET_E(f, value) (assert (ALL_E (= (f##1 e) (ite (= e d) value (f##0 e)))))
#define SET_ALL(f, value) (assert (ALL_EP (= (f##1 e p) (ite (= e d) value (f##0 e p)))))

#define SAME_PODS SAME_P(end) SAME_P(fin)
#define SAME_JOB SAME_P(unc) SAME_P(once) SAME_P(twice) SAME(interim) SAME(final)
#define SAME_VIEW SAME_EP(vend) SAME_EP(vfin)
#define SAME_JOB_SEEN SAME_EP(vunc) SAME_E(vinterim) SAME_E(fresh)

#ifdef STEP_start
/* A new Job, with pods that run and have the finalizer, and executors that know it. */
(assert (ALL_P (and (not (end1 p)) (fin1 p) (not (unc1 p)) (not (once1 p)) (not (twice1 p)))))
(assert (and (not interim1) (not final1)))
(assert (ALL_EP (and (not (vend1 e p)) (vfin1 e p) (not (vunc1 e p)) (not (rel1 e p)) (not (vinterim1 e)) (fresh1 e) (fenced1 e))))
#else
(assert INVARIANT(0))
#endif

#ifdef STEP_podEnds
SET_P(end, true) SAME_P(fin) SAME_JOB SAME_VIEW SAME_JOB_SEEN SAME_E(fenced) SAME_EP(rel)
#endif

#ifdef STEP_watchPod
/* As the pod is, or as it was between its end and its release. */
SAME_PODS SAME_JOB SAME_JOB_SEEN SAME_E(fenced) SAME_EP(rel)
(assert (or (= (vfin1 d q) (fin0 q)) (= (vfin1 d q) (vfin0 d q))))
(assert (= (vend1 d q) (end0 q)))
(assert (ALL_EP (=> (not (and (= e d) (= p q))) (and (= (vfin1 e p) (vfin0 e p)) (= (vend1 e p) (vend0 e p))))))
#endif

#ifdef STEP_readJob
/* Of a version that somebody else wrote. Until its pods are listed, the executor decides nothing. */
SAME_PODS SAME_JOB SAME_VIEW SAME_EP(rel)
SET_ALL(vunc, (unc0 p)) SET_E(vinterim, interim0) SET_E(fresh, true) SET_E(fenced, false)
#endif

#ifdef STEP_listPods
SAME_PODS SAME_JOB SAME_JOB_SEEN SAME_EP(rel)
SET_ALL(vend, (end0 p)) SET_ALL(vfin, (fin0 p)) SET_E(fenced, true)
#endif

#ifdef STEP_writeStatus
/* Counts what is confirmed, records what has ended, declares a verdict or ends the Job. The answer may be lost. */
#define COUNTS(p) (and (vunc0 d p) (not (vfin0 d p)))
#define RECORDS(p) (and (not (vunc0 d p)) (vend0 d p) (vfin0 d p))
(assert (and (fresh0 d) (fenced0 d) (not final0)))
SAME_PODS SAME_VIEW SAME_E(fenced)
(assert (ALL_P (= (unc1 p) (or RECORDS(p) (and (unc0 p) (not COUNTS(p)))))))
(assert (ALL_P (= (once1 p) (or (once0 p) COUNTS(p)))))
(assert (ALL_P (= (twice1 p) (or (twice0 p) (and (once0 p) COUNTS(p))))))
(assert (=> interim0 interim1))
(assert (=> final1 (and (vinterim0 d) (ALL_P (and (vend0 d p) (not (vfin0 d p)) (or (not (vunc0 d p)) COUNTS(p)))))))
(declare-const answered Bool)
(assert (ALL_EP (= (vunc1 e p) (ite (and (= e d) answered) (unc1 p) (vunc0 e p)))))
(assert (ALL_E (= (vinterim1 e) (ite (and (= e d) answered) interim1 (vinterim0 e)))))
(assert (ALL_E (= (fresh1 e) (and (= e d) answered))))
(assert (ALL_EP (= (rel1 e p) (ite (= e d) (and answered (vfin0 d p) (or RECORDS(p) (vunc0 d p))) (rel0 e p)))))
#endif

#ifdef STEP_release
/* The answer shows that the finalizer is gone, or is lost. */
(assert (rel0 d q))
SAME_P(end) SAME_JOB SAME_EP(vend) SAME_JOB_SEEN SAME_E(fenced)
SET_P(fin, false)
(assert (ALL_EP (=> (not (and (= e d) (= p q))) (= (vfin1 e p) (vfin0 e p)))))
(assert (=> (vfin1 d q) (vfin0 d q)))
SET_EP(rel, false)
#endif

#ifdef STEP_restart
/* Lists the Jobs, and then the pods. */
SAME_PODS SAME_JOB
SET_ALL(vunc, (unc0 p)) SET_E(vinterim, interim0) SET_E(fresh, true)
SET_ALL(vend, (end0 p)) SET_ALL(vfin, (fin0 p)) SET_E(fenced, true) SET_ALL(rel, false)
#endif

#ifdef IMPLIES
(assert (not SAFE(0)))
#else
(assert (not INVARIANT(1)))
#endif
(check-sat)
