"""One answer per question, on live or recorded facts: does it loop, who leaks, is it used."""
