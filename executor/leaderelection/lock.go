package leaderelection

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A lock reads and writes the lease for client-go's election, and reports to the tenure
// what it sees.
type lock struct {
	*resourcelock.LeaseLock
	tenure *tenure
	period time.Duration       // See Config.StandbyPeriod.
	leader func(holder string) // Called with each holder that is read.

	vacancy  vacancy
	acquired metav1.Time
}

// Get implements resourcelock.Interface. For a standby it returns only when the lease is free
// or cannot be read. If it returned at once, client-go would read the lease only every 1 to 2.2
// RetryPeriods, and nobody would lead for that long.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	for {
		record, raw, err := l.LeaseLock.Get(ctx)
		if err == nil {
			l.tenure.seen(record.HolderIdentity, l.Identity())
			l.leader(record.HolderIdentity)
		}
		deleted := apierrors.IsNotFound(err)
		if l.tenure.begun() || (err != nil && !deleted) {
			return record, raw, err
		}
		now := time.Now()
		if err == nil {
			l.vacancy.seen(record, raw, now)
		}
		wait := l.vacancy.left(now)
		if wait == 0 || (err == nil && record.HolderIdentity == l.Identity()) {
			if err == nil {
				// client-go does not know for how long the lease has not been renewed. If the
				// record had a holder, client-go would wait before it takes the lease.
				record.HolderIdentity = ""
			}
			return record, raw, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(min(wait, l.period)):
		}
	}
}

// Create implements resourcelock.Interface. If another replica created the lease first, it
// counts as the holder from now on, even if somebody deletes the lease before this replica has
// read it.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.write(ctx, record, l.LeaseLock.Create)
	if apierrors.IsAlreadyExists(err) {
		l.vacancy.held(time.Duration(record.LeaseDurationSeconds)*time.Second, time.Now())
	}
	return err
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.LeaseLock.Update)
}

// write acquires or renews the lease, but not after it was lost. It sets the times itself:
// client-go took them before Get, which may have waited for long.
func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, send func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if l.tenure.lost.Err() != nil {
		return ErrLost
	}
	sent := l.tenure.now()
	now := metav1.NewTime(sent.wall)
	acquired := l.acquired
	if acquired.IsZero() {
		acquired = now
	}
	record.AcquireTime, record.RenewTime = acquired, now
	if err := send(ctx, record); err != nil {
		return err
	}
	l.acquired = acquired
	l.tenure.renewedAt(sent)
	return nil
}
