// Package jobcheck says what is wrong with a Job or CronJob before it runs.
package jobcheck
