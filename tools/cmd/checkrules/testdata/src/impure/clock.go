package impure

import "time"

func clock(t time.Time) []any {
	now := time.Now // want `time.Now: use the request's now`
	return []any{
		now(),
		time.Now(),                       // want `time.Now: use the request's now`
		time.Since(t),                    // want `time.Since: use the request's now`
		time.Until(t),                    // want `time.Until: use the request's now`
		time.After(time.Second),          // want `time.After: answer with a requeue time`
		time.AfterFunc(time.Second, nil), // want `time.AfterFunc: answer with a requeue time`
		time.Tick(time.Second),           // want `time.Tick: answer with a requeue time`
		time.NewTimer(time.Second),       // want `time.NewTimer: answer with a requeue time`
		time.NewTicker(time.Second),      // want `time.NewTicker: answer with a requeue time`
		t.In(time.Local),                 // want `time.Local: the host's time zone`
		t.Local(),                        // want `time.Time.Local: the host's time zone`
	}
}

func sleep() {
	time.Sleep(time.Second) // want `time.Sleep: answer with a requeue time`
}

func zoneOf(name string) (*time.Location, error) {
	return time.LoadLocation(name) // want `time.LoadLocation: it reads an environment variable`
}
