package podjob

import (
	"container/heap"
	"time"
)

// An agenda is what will happen, in order of time. It implements heap.Interface.
type agenda struct {
	items []item
	added int
}

type item struct {
	at    time.Time
	order int // Of items at the same time, the one added first comes first.
	do    func()
}

// Len implements sort.Interface.
func (a *agenda) Len() int { return len(a.items) }

// Less implements sort.Interface.
func (a *agenda) Less(i, j int) bool {
	x, y := a.items[i], a.items[j]
	return x.at.Before(y.at) || x.at.Equal(y.at) && x.order < y.order
}

// Swap implements sort.Interface.
func (a *agenda) Swap(i, j int) { a.items[i], a.items[j] = a.items[j], a.items[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { a.items = append(a.items, x.(item)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := a.items[len(a.items)-1]
	a.items = a.items[:len(a.items)-1]
	return last
}

// after plans something.
func (w *world) after(d time.Duration, do func()) {
	w.agenda.added++
	heap.Push(&w.agenda, item{time.Now().Add(d), w.agenda.added, do})
}

// happen lets everything happen that is due until then, and returns at that time.
func (w *world) happen(until time.Time) {
	for w.agenda.Len() > 0 && !w.agenda.items[0].at.After(until) {
		next := heap.Pop(&w.agenda).(item)
		time.Sleep(time.Until(next.at))
		next.do()
	}
	time.Sleep(time.Until(until))
}

// pass lets some time pass.
func (w *world) pass(d time.Duration) { w.happen(time.Now().Add(d)) }

// rest waits for a change, but not longer than until due. Zero: there is no such time.
func (w *world) rest(due time.Time) {
	if due.IsZero() || due.After(w.ends) {
		due = w.ends
	}
	for !w.changed && time.Now().Before(due) {
		next := due
		if w.agenda.Len() > 0 && w.agenda.items[0].at.Before(due) {
			next = w.agenda.items[0].at
		}
		w.happen(next)
	}
}
