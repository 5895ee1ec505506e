package simulate

import (
	"fmt"
	"time"

	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// The executor's delay after the API server has refused pods: it doubles with each refusal in a row.
const (
	firstRefusal   = time.Second
	longestRefusal = time.Minute
)

// refusals are those of the quota.
type refusals struct {
	tries int
	// until is when pods may be created again.
	until time.Duration
}

// refused reports whether the quota refuses the pods of a decision. The next try comes after the executor's delay, which the
// option quotaMaxSeconds of the retry delay may shorten.
func (p *player) refused(c *jobpolicyv1.CreatePods) bool {
	q := &p.quota
	if c.GetCount() == 0 {
		return false
	}
	if p.now >= p.sc.QuotaUntil {
		if q.tries > 0 {
			p.sayText(PodsRefused, fmt.Sprintf("the quota has room now; it has refused %d tries", q.tries))
			q.tries = 0
		}
		return false
	}
	longest := longestRefusal
	if asked := time.Duration(p.spec.GetOptions().GetRetryDelay().GetQuotaMaxSeconds()) * time.Second; asked > 0 {
		longest = min(longest, asked)
	}
	delay := min(firstRefusal<<min(q.tries, 6), longest)
	if q.tries == 0 {
		p.sayText(PodsRefused, fmt.Sprintf("the quota refuses new pods; tried again after %s, at the latest %s after each refusal", Clock(delay), Clock(longest)))
	}
	q.tries++
	q.until = p.now + delay
	return true
}

// deferrals are the steps that the engine leaves for later.
func (p *player) deferrals() []*jobpolicyv1.Deferral {
	if p.quota.until <= p.now {
		return nil
	}
	return []*jobpolicyv1.Deferral{{Step: jobpolicyv1.Step_STEP_CREATE_PODS, Until: p.at(p.quota.until)}}
}
