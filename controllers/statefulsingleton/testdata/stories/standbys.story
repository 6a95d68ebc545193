# the user creates the StatefulSingleton
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
= Running, active: none, waiting: none
= Available False NoPods: no pod matches the selector
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user creates a Deployment with replicas 1, RollingUpdate
    web-1-a is created
    web-1-a is bound to n1
  patch status of statefulsingleton db: Holder, web-1-a, epoch 1
  patch pod web-1-a: Grant, epoch 1
  set a condition of pod web-1-a: Ready, True
    web-1-a waits at its gate
    web-1-a runs its program
  patch pod web-1-a: Remind, epoch 1
= Running, active: web-1-a, waiting: none
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user sets replicas 3
    web-1 is scaled to 3
    web-1-b is created
    web-1-c is created
    web-1-b is bound to n2
    web-1-c is bound to n3
    web-1-b waits at its gate
    web-1-c waits at its gate
= Running, active: web-1-a, waiting: web-1-b, web-1-c
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# a user deletes the running pod
    web-1-d is created
    web-1-d is bound to n1
    web-1-a stops
    web-1-d waits at its gate
  patch pod web-1-a: Release
  patch status of statefulsingleton db: Holder, web-1-b, epoch 2
  patch pod web-1-b: Grant, epoch 2
  set a condition of pod web-1-b: Ready, True
    web-1-b runs its program
  patch pod web-1-b: Remind, epoch 2
= Running, active: web-1-b, waiting: web-1-c, web-1-d
= Available True ActivePodReady: pod web-1-b is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user sets image two
    web-2-e is created
    web-1 is scaled to 1
    web-2-e is bound to n1
    web-2 is scaled to 3
    web-1 deletes web-1-d
    web-1 deletes web-1-c
    web-2-f is created
    web-2-e waits at its gate
    web-2-g is created
    web-2-f is bound to n2
    web-2-g is bound to n3
    web-1-d stops
    web-1-c stops
    web-2-f waits at its gate
  delete pod web-1-b: Superseded, a pod of the newest revision waits for it
    web-2-g waits at its gate
    web-1-h is created
    web-1-h is bound to n1
    web-1-b stops
  patch pod web-1-b: Release
  patch status of statefulsingleton db: Holder, web-2-e, epoch 3
  patch pod web-2-e: Grant, epoch 3
  set a condition of pod web-2-e: Ready, True
    web-1-h waits at its gate
    web-2-e runs its program
    web-1 is scaled to 0
  patch pod web-2-e: Remind, epoch 3
    web-1 deletes web-1-h
    web-1-h stops
= Running, active: web-2-e, waiting: web-2-f, web-2-g
= Available True ActivePodReady: pod web-2-e is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user sets replicas 1
    web-2 is scaled to 1
    web-2 deletes web-2-g
    web-2 deletes web-2-f
    web-2-g stops
    web-2-f stops
= Running, active: web-2-e, waiting: none
= Available True ActivePodReady: pod web-2-e is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
