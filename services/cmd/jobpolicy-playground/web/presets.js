'use strict';

// The examples of the page. Those with a file are manifests of deploy/examples, which
// manifests.js holds; the rest of each says what happens to its pods.
const presets = [
  { title: 'Retries for each index', file: 'backoff-per-index.yaml', runtime: '40s', script: 'pod 0:fail@20s\npod 2:fail@20s\npod 4:fail@20s,succeed\npod 6:fail@20s' },
  { title: 'Exit code 42 fails the Job', file: 'pod-failure-policy.yaml', runtime: '50s±20s', script: 'pod 4:evict@20s\npod 7:fail(42)@30s' },
  { title: 'Too many failed indexes', file: 'max-failed-indexes.yaml', runtime: '10m', script: 'pod 0:fail(13)@30s\npod 2:fail(13)@1m' },
  { title: 'Success of some indexes is enough', file: 'success-policy.yaml', runtime: '1m', script: 'pod 2:fail@20s,succeed@20s\npod *:fail@20s' },
  { title: 'Success of the leader', file: 'success-leader.yaml', runtime: '10m', script: 'pod 0:succeed@1m' },
  { title: 'Retries of a Job: Never', file: 'retry-never.yaml', runtime: '20s', script: 'pod *:fail@20s' },
  { title: 'Retries of a Job: OnFailure', file: 'retry-on-failure.yaml', runtime: '20s', script: 'pod *:fail@20s' },
  { title: 'An eviction does not count', file: 'disruption-ignored.yaml', script: 'pod 0:evict@20s' },
  { title: 'Replaced only when gone', file: 'pod-replacement.yaml', script: 'pod 1:evict@20s' },
  { title: 'Suspended and resumed', file: 'suspend-resume.yaml', script: 'suspend-at 20s\nresume-at 50s' },
  { title: 'Created suspended, for a queue', file: 'queued.yaml', script: 'resume-at 30s' },
  { title: 'Elastic: grows and shrinks', file: 'elastic.yaml', script: 'scale parallelism=4,completions=4@20s\nscale parallelism=3,completions=3@40s' },
  { title: 'A deadline', file: 'pi-with-timeout.yaml', runtime: '1h' },
  { title: 'A time to live', file: 'pi-with-ttl.yaml', runtime: '10s' },
  { title: 'Option: a deadline to start', file: 'start-deadline.yaml', script: 'pod *:stuck' },
  { title: 'Option: pods that never start', file: 'never-started.yaml', script: 'pod *:stuck' },
  { title: 'Option: a deadline for each try', file: 'try-deadline.yaml', script: 'pod 0:hang\npod 1:hang\npod 2:succeed@1s' },
  { title: 'Option: more memory for the next try', file: 'more-memory.yaml', script: 'pod 1:oom@5s' },
  { title: 'Option: a retry delay of its own', file: 'retry-delay.yaml', script: 'pod *:fail@1s' },
  { title: 'Option: a short delay while a quota is used up', file: 'quota.yaml', script: 'quota-until 1m' },
  { title: 'Option: pods of a lost node', file: 'lost-node.yaml', script: 'node-lost-at 5s' },
  { title: 'Option: the node is Ready again, so the Job waits', file: 'unready-node.yaml', script: 'node-lost-at 5s\nnode-back-at 22s' },
  { title: 'Option: when it fails, logs stay', file: 'keep-logs.yaml', script: 'pod 0:hang\npod 1:fail@20s' },
  { title: 'Option: few finished pods stay', file: 'few-pods.yaml', runtime: '5s' },
  { title: 'Indexed', file: 'indexed.yaml', runtime: '30s±15s' },
  { title: 'Two at a time', file: 'pi-parallel.yaml', runtime: '30s±15s' },
  { title: 'A work queue', file: 'work-queue.yaml', runtime: '2m±1m' },
  { title: 'The smallest Job', file: 'hello.yaml' },
  { title: 'One pod: digits of pi', file: 'pi.yaml' },
  { title: 'Pods that wait for a ConfigMap', file: 'stuck-pods.yaml', script: 'pod *:stuck' },
  { title: 'A sidecar', file: 'sidecar.yaml', runtime: '20s' },
  { title: 'A Job whose pods outlive it', file: 'old.yaml', runtime: '1h', script: 'delete-at 10s' },
  { title: 'A selector chosen by hand', file: 'new.yaml' },
  { title: 'For another controller, by the same rules', file: 'managed-elsewhere.yaml' },
  {
    title: 'CronJob: every night, over clock changes', now: '2026-03-26', lastRun: '2026-03-20T01:30:00Z', runtime: '10m',
    manifest: `apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  startingDeadlineSeconds: 3600
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers:
          - name: backup
            image: backup
`,
  },
  { title: 'CronJob: every minute', file: 'cronjob.yaml', runtime: '5s' },
  { title: 'CronJob, options: missed runs, and when the next is due', file: 'missed-runs.yaml', now: '2026-06-01', lastRun: '2020-01-01T00:00:00Z', runtime: '5s' },
  { title: 'CronJob, options: a group, and a stagger', file: 'group-customers.yaml', runtime: '30s' },
  { title: 'CronJob, options: the other one of the group', file: 'group-orders.yaml', runtime: '30s' },
  { title: 'CronJob, option: a group of the cluster', file: 'cluster-group-red.yaml', runtime: '30s' },
  { title: 'CronJob, option: another one of that group', file: 'cluster-group-blue.yaml', runtime: '30s' },
];
