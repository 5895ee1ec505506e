package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/leaderelection"
)

// openLog opens the decision log; nil if there is none. The function that it returns is
// called with the error of run. It closes the log and adds an error of that. If the lease
// was lost, it does not wait for the log, because the process must end at once.
func (o *options) openLog(ctx context.Context, registerer prometheus.Registerer, logger *slog.Logger) (executor.DecisionLog, func(err error) error, error) {
	log, err := o.log.Start(ctx, service(), registerer, logger)
	if err != nil || log == nil {
		return nil, func(err error) error { return err }, err
	}
	return log, func(err error) error {
		if errors.Is(err, leaderelection.ErrLost) {
			return err
		}
		return errors.Join(err, within(flushTimeout, log.Close))
	}, nil
}
