# the user creates a Deployment with replicas 1, RollingUpdate
    web-1-a is created without a gate
    web-1-a is bound to n1
    web-1-a runs its program without a gate
= the StatefulSingleton does not exist
# the user creates the StatefulSingleton
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
  patch pod web-1-a: Protect
= Running, active: web-1-a, waiting: none
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
= UnmanagedPod True PodWithoutGate: these pods match the selector and may be running the program without the gate, because they were created before the StatefulSingleton, without its webhook, before spec.containers listed their containers, or with a gate that is not the operator's: web-1-a. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod web-1-a
# the user sets image two
    web-2-b is created
    web-2-b is bound to n2
    web-2-b waits at its gate
  delete pod web-1-a: Superseded, a pod of the newest revision waits for it
    web-1-c is created
    web-1-c is bound to n3
    web-1-a stops
    web-1-c waits at its gate
  patch pod web-1-a: Release
  patch status of statefulsingleton db: Holder, web-2-b, epoch 1
  patch pod web-2-b: Grant, epoch 1
  set a condition of pod web-2-b: Ready, True
    web-2-b runs its program
  patch pod web-2-b: Remind, epoch 1
    web-1 is scaled to 0
    web-1 deletes web-1-c
    web-1-c stops
= Running, active: web-2-b, waiting: none
= Available True ActivePodReady: pod web-2-b is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
