# The one line that MultiKueue's adapter needs more.
/statusUpdate, deferred := determineStatusUpdate(ctx, log, &localJob, &remoteJob)$/a\
		statusUpdate = mirroredStatus(ctx, &localJob, statusUpdate)
