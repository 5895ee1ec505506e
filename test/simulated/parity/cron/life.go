package cron

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jobpolicy.dev/test/simulated/parity/virtual"
)

const (
	pokeAnnotation = "test/poke"
	cronName       = "cron"
	// settle is the time that a side has to come to rest.
	settle = 10 * time.Second
	// aside is by how much a life's moments are not at its creation's second of ten.
	aside = 2 * time.Second
	// awake is the longest jump through which controllers may run.
	awake = time.Hour
)

// A life is one CronJob, or one Job with a time to live, and what happens to it. It
// is played first on the built-in side, whose state decides what there is to choose from,
// and then on ours.
type life struct {
	*rand.Rand
	seed uint64
	spec *batchv1.CronJobSpec // nil for a Job with a time to live
	ttl  *int32
	// irregular: it has, or had, a schedule whose gaps differ; every: one that counts
	// from the last run; hasty: a starting deadline of 0; taken: somebody else's Job has
	// the name of a run.
	irregular, every, hasty, taken bool
	// daily: it has, or had, a schedule by the day; changing: a zone whose clocks change.
	daily, changing bool
	deeds           []deed
	known           map[string]bool
	// crowded: the controllers' client has begun to drop events. race is a problem
	// that the built-in side has, too, if it sees things later.
	crowded       bool
	problem, race string
	// shown are all lines that any side ever showed.
	shown map[string]bool
}

// A deed is an act of somebody, or a jump of time.
type deed struct {
	text string
	do   func(context.Context, *side) error
	// jump is how much time goes by; asleep: without controllers.
	jump   time.Duration
	asleep bool
	// What is known of the life after it.
	irregular, every, hasty, taken bool
}

// newLife makes the life of a seed.
func newLife(seed uint64, cron bool) *life {
	l := &life{Rand: rand.New(rand.NewPCG(seed, 0x63726f6e)), seed: seed, known: map[string]bool{}, shown: map[string]bool{}}
	if cron {
		l.spec = l.newSpec()
	}
	return l
}

func (l *life) String() string {
	kind := "cron"
	if l.spec == nil {
		kind = "ttl"
	}
	lines := []string{fmt.Sprintf("%s-%d", kind, l.seed)}
	for _, d := range l.deeds {
		if d.text != "" {
			lines = append(lines, d.text)
		}
	}
	return strings.Join(lines, "\n  ")
}

func (l *life) chance(percent int) bool { return l.IntN(100) < percent }

func pick[T any](l *life, from ...T) T { return from[l.IntN(len(from))] }

// A moment is what a side showed after a deed.
type moment struct {
	view    []string
	crowded bool
	// answer is the API server's answer to the deed.
	answer string
}

// play plays the life on one side, in a bubble. plan chooses the deeds; nil if they are
// known already.
func (l *life) play(t *testing.T, p player, plan *planner) (moments []moment, wrong []string) {
	virtual.Bubble(t, l.String(), func() {
		ctx := context.Background()
		s, err := p.raise(ctx)
		if err != nil {
			wrong = append(wrong, err.Error())
			return
		}
		time.Sleep(time.Until(l.firstDay()))
		s.start()
		time.Sleep(settle)
		for i := 0; ; i++ {
			if i == len(l.deeds) {
				if plan == nil || !plan.next(s) {
					break
				}
			}
			moments = append(moments, s.live(ctx, l.deeds[i]))
		}
		s.plane.Stop()
		wrong = slices.Concat(s.plane.Wrong(), s.plane.Refused())
		if err := s.engine.Err(); err != nil {
			wrong = append(wrong, "the engine refused a request: "+err.Error())
		}
	})
	return moments, wrong
}

// live does a deed and returns what the side then shows.
func (s *side) live(ctx context.Context, d deed) moment {
	m := moment{}
	if d.do != nil {
		m.answer = string(reason(d.do(ctx, s)))
	}
	if d.asleep {
		s.sleep()
	}
	time.Sleep(d.jump)
	if d.asleep {
		s.start()
	}
	time.Sleep(settle)
	m.view, m.crowded = s.view(), s.isCrowded()
	return m
}

// reason is the reason of an expected refusal, and the whole text of any other error.
func reason(err error) string {
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsAlreadyExists(err):
		return string(apierrors.ReasonForError(err))
	}
	return err.Error()
}

// firstDay is when a life begins: some day of 2028. The object is made at second 23 of
// a minute, and all moments are at a second that ends in 5. So no run is due within the
// two seconds before a moment, whether its schedule has whole minutes or counts from the
// creation.
func (l *life) firstDay() time.Time {
	random := rand.New(rand.NewPCG(l.seed, 0x646179))
	return time.Date(2028, time.January, 1+random.IntN(366), random.IntN(24), random.IntN(60), 13, 0, time.UTC)
}
