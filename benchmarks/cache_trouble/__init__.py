"""What can happen to a cache: processes that are killed, bytes that change, disks that are full."""
