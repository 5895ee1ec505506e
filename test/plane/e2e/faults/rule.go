package faults

import "slices"

// A Rule says what happens to the calls that match it.
type Rule struct {
	proxy *Proxy
	match Match
	fault Fault
	times int
	when  func(Call) bool
	hits  int
}

// An Option restricts a rule.
type Option func(*Rule)

// Times ends the rule after n calls.
func Times(n int) Option { return func(r *Rule) { r.times = n } }

// When asks a function whether the rule applies to the call. It is called for one call
// at a time.
func When(f func(Call) bool) Option { return func(r *Rule) { r.when = f } }

// On adds a rule.
func (p *Proxy) On(m Match, f Fault, options ...Option) *Rule {
	r := &Rule{proxy: p, match: m, fault: f}
	for _, o := range options {
		o(r)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// Off ends the rule. It still applies to calls that it has decided.
func (r *Rule) Off() {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	r.proxy.rules = slices.DeleteFunc(r.proxy.rules, func(have *Rule) bool { return have == r })
}

// Hits is how many calls the rule has applied to.
func (r *Rule) Hits() int {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	return r.hits
}

// faultFor returns the fault of the latest rule that applies to the call; nil if none
// does.
func (p *Proxy) faultFor(c Call) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range slices.Backward(p.rules) {
		if r.takes(c) {
			r.hits++
			return r.fault
		}
	}
	return nil
}

func (r *Rule) takes(c Call) bool {
	if !r.match.fits(c) || (r.when != nil && !r.when(c)) || (r.times > 0 && r.hits >= r.times) {
		return false
	}
	return true
}
