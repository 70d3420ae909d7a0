"""What several test files share: records, problems, checks. No test imports another test."""
