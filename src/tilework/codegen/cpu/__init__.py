"""CPU code: loop programs and plans to LLVM text, object code, and addresses."""
