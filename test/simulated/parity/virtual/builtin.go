package virtual

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
)

// builtinWorkers is how many objects each built-in controller handles at the same
// time; a case has few.
const builtinWorkers = 2

// BuiltinJobs is Kubernetes' Job controller.
func BuiltinJobs(ctx context.Context, cfg *rest.Config) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	jobs, err := job.NewController(ctx, client, factory.Core().V1().Pods(), factory.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	jobs.Run(ctx, builtinWorkers)
	factory.Shutdown()
	return nil
}

// BuiltinCronJobs is Kubernetes' CronJob controller and its TTL-after-finished
// controller.
func BuiltinCronJobs(ctx context.Context, cfg *rest.Config) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	crons, err := cronjob.NewControllerV2(ctx, factory.Batch().V1().Jobs(), factory.Batch().V1().CronJobs(), client)
	if err != nil {
		return err
	}
	expiry := ttlafterfinished.New(ctx, factory.Batch().V1().Jobs(), client)
	factory.Start(ctx.Done())
	done := make(chan struct{})
	go func() {
		defer close(done)
		expiry.Run(ctx, builtinWorkers)
	}()
	crons.Run(ctx, builtinWorkers)
	<-done
	factory.Shutdown()
	return nil
}
